"""The messages of a search: read back as they were written, and nothing else is taken for one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import Raw

from benchmarks.search import protocol
from benchmarks.search.protocol import (
    DataFacts,
    EpochDone,
    Hyperparameters,
    Over,
    Propose,
    Proposed,
    ProtocolError,
    Register,
    encode,
    reply_of,
    request_of,
)

WHO: dict[str, Any] = {"worker": 3, "session": "0123456789abcdef" * 2, "start": 1}
PROPOSED = Proposed(None, (Raw(b'{"kind":"deepen"}'),), Raw(b'{"layers":[]}'), Hyperparameters(0.1, 3, 448))
EPOCH = EpochDone(
    **WHO,
    trial=1,
    attempt=1,
    epoch=2,
    accuracy=0.5,
    loss=None,
    seconds=12.5,
    delayed_s=0.0,
    training_samples=1280,
    validation_samples=50,
)


@pytest.mark.parametrize(
    "message",
    [
        Register(
            **WHO,
            node_rank=1,
            ranks=8,
            precision="bf16",
            data=DataFacts(1280, 50, "ab" * 32),
            configuration="ef" * 32,
        ),
        EPOCH,
    ],
)
def test_a_message_is_read_back_as_it_was_written(message: protocol.Request) -> None:
    assert request_of(encode(message)) == message


def test_an_architecture_is_passed_on_as_it_is() -> None:
    back = request_of(encode(Propose(**WHO, proposed=PROPOSED)))
    assert isinstance(back, Propose)
    assert bytes(back.proposed.architecture) == b'{"layers":[]}'
    assert [bytes(edit) for edit in back.proposed.edits] == [b'{"kind":"deepen"}']


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"kind": "shut_down"}, "Invalid value"),
        ({"kind": "over"}, "Invalid value"),  # a reply is no request
        ({"more": 1}, "unknown field"),
        ({"worker": -1}, "worker"),
        ({"worker": True}, "worker"),
        ({"session": "x" * 32}, "session"),
        ({"session": "a" * 32 + "\n"}, "session"),
        ({"accuracy": 1.5}, "accuracy"),
        ({"epoch": 0}, "epoch"),
        ({"training_samples": 2**60}, "training_samples"),
        ({"seconds": -1.0}, "seconds"),
        ({"seconds": None}, "seconds"),
        ({"seconds": 0.0}, "seconds"),
        ({"start": 5}, "start"),  # a launcher starts a worker four times
        ({"loss": -0.1}, "loss"),
        ({"loss": 1e30}, "loss"),
    ],
)
def test_what_is_no_message_is_refused_and_the_error_names_it(changed: dict[str, Any], says: str) -> None:
    value = {**json.loads(encode(EPOCH)), **changed}
    with pytest.raises(ProtocolError, match=says):
        request_of(json.dumps(value).encode())


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"\xff",
        b"{" * 100_000,
        encode(EPOCH).replace(b"12.5", b"1e999"),
        encode(EPOCH).replace(b"12.5", b"NaN"),
        encode(Propose(**WHO, proposed=PROPOSED)).replace(b"[]", b"[" * 200_000 + b"]" * 200_000),
        encode(Over("")),
    ],
)
def test_hostile_bodies_are_refused(body: bytes) -> None:
    with pytest.raises(ProtocolError):
        request_of(body)


def test_a_request_is_no_reply() -> None:
    assert reply_of(encode(Over("done"))) == Over("done")
    with pytest.raises(ProtocolError):
        reply_of(encode(EPOCH))
