"""What a worker makes of answers of which only a part has come, as where the controller is killed while it sends."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from benchmarks.search.client import Client, Place
from benchmarks.search.protocol import Beat, Heartbeat, Refusal, encode
from benchmarks.search.weight_exchange import WeightExchange
from tests.benchmarks.search.engine_parts import who


def response(status: str, body: bytes) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


BEAT = response("200 OK", encode(Beat(7.0)))
REFUSAL = response("410 Gone", encode(Refusal("it is not registered")))
WEIGHTS = response("200 OK", bytes(range(256)))
CUTS = ["nothing", "a part of the head", "the head", "a part of the body"]


@contextmanager
def answering(*answers: bytes) -> Iterator[Place]:
    """A listener that gives each connection the next answer, and breaks it off after it."""

    def serve() -> None:
        for answer in answers:
            connection, _ = listener.accept()
            with connection:
                connection.recv(2**16)
                connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield Place("127.0.0.1", listener.getsockname()[1], "a" * 64, 0, "0" * 32, 1, 0)
        thread.join()


def cut(answer: bytes, what: str) -> bytes:
    head = answer.index(b"\r\n\r\n") + 4
    return answer[: dict(zip(CUTS, (0, 8, head, len(answer) - 3), strict=True))[what]]


@pytest.mark.parametrize("what", CUTS)
@pytest.mark.parametrize("first", [BEAT, REFUSAL], ids=["reply", "refusal"])
def test_a_request_is_sent_again_until_its_answer_is_whole(first: bytes, what: str) -> None:
    with answering(cut(first, what), BEAT) as place:
        assert Client(place, give_up_s=60.0).send(Heartbeat(**who(0), waited_s=0.0)) == Beat(7.0)


@pytest.mark.parametrize("what", CUTS)
def test_weights_of_which_a_part_has_come_are_asked_for_again(what: str) -> None:
    with answering(cut(WEIGHTS, what), WEIGHTS) as place:
        assert WeightExchange(place).get(1) == bytes(range(256))
