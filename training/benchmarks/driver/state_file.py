"""Nested plain data and tensors as one file: what a checkpoint is written as, whatever the framework.

    magic line | length of the header, 8 bytes | header, JSON | bytes of the tensors | SHA-256 of all before

There is no pickle in it: to read a file never runs code. A file that was cut off or altered is known by its
length and its SHA-256.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from utils.errors import FlagPerfError

MAGIC = b"FlagPerf checkpoint 1\n"
_LENGTH_BYTES = 8
_DIGEST_BYTES = hashlib.sha256().digest_size
_PLAIN = (type(None), bool, int, float, str)


@dataclass(frozen=True)
class Raw:
    """A tensor as bytes: `dtype` in the framework's words, `size` in bytes; `read` gives the bytes.

    A tensor on a device is copied to the host no sooner than `read` is called: only one is there at a time.
    """

    dtype: str
    shape: tuple[int, ...]
    size: int
    read: Callable[[], Any]


def write_state(stream: BinaryIO, state: Any) -> None:
    """Write `state`: dicts, lists, tuples, numbers, texts, bytes, None, and Raw.

    Raises:
        FlagPerfError: something else is in it.
    """
    leaves: list[Raw] = []
    tree = _described(state, leaves, "state")
    tensors = [(leaf.dtype, leaf.shape, leaf.size) for leaf in leaves]
    header = json.dumps({"tree": tree, "tensors": tensors}).encode()
    digest = hashlib.sha256()
    for block in (MAGIC, len(header).to_bytes(_LENGTH_BYTES, "little"), header):
        digest.update(block)
        stream.write(block)
    for leaf in leaves:
        content = leaf.read()
        digest.update(content)
        stream.write(content)
    stream.write(digest.digest())


def read_verified(path: Path) -> bytearray:
    """The bytes of a file.

    Raises:
        FlagPerfError: it is not there, or not whole: cut off, altered, or no checkpoint at all.
    """
    try:
        data = bytearray(path.stat().st_size)
        with path.open("rb") as stream:
            length = stream.readinto(data)
    except OSError as error:
        raise FlagPerfError(f"cannot be read: {error.strerror}", where=str(path)) from error
    if not data.startswith(MAGIC):
        raise FlagPerfError("is no checkpoint of this form", where=str(path))
    content = memoryview(data)[: max(0, length - _DIGEST_BYTES)]
    if length < len(data) or hashlib.sha256(content).digest() != data[len(content) :]:
        raise FlagPerfError("is cut off or altered: its SHA-256 is not that of its content", where=str(path))
    return data


def parse_state(data: bytearray) -> Any:
    """What `write_state` wrote; each Raw reads its part of `data`."""
    begin = len(MAGIC) + _LENGTH_BYTES
    end = begin + int.from_bytes(data[len(MAGIC) : begin], "little")
    header = json.loads(data[begin:end])
    view, leaves, at = memoryview(data), [], end
    for dtype, shape, size in header["tensors"]:
        leaves.append(Raw(dtype, tuple(shape), size, partial(view.__getitem__, slice(at, at + size))))
        at += size
    return _restored(header["tree"], leaves)


def _described(value: Any, leaves: list[Raw], where: str) -> Any:
    """`value` as JSON that keeps apart what JSON does not: tuples from lists, keys that are no texts."""
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, Raw):
        leaves.append(value)
        return {"tensor": len(leaves) - 1}
    if isinstance(value, (bytes, bytearray)):
        leaves.append(Raw("bytes", (len(value),), len(value), lambda: value))
        return {"bytes": len(leaves) - 1}
    if isinstance(value, Mapping):
        pairs = [
            [_key(key, where), _described(item, leaves, f"{where}[{key!r}]")] for key, item in value.items()
        ]
        return {"dict": pairs}
    if isinstance(value, (list, tuple)):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [_described(item, leaves, f"{where}[{index}]") for index, item in enumerate(value)]}
    raise FlagPerfError(
        f"{where} is a {type(value).__name__}, which a checkpoint cannot hold",
        where="checkpoint",
        remedy="let the vendor's optimizer and scaler keep their state in numbers, texts and tensors",
    )


def _key(key: Any, where: str) -> Any:
    if isinstance(key, _PLAIN):
        return key
    raise FlagPerfError(f"{where} has a {type(key).__name__} as a key", where="checkpoint")


def _restored(tree: Any, leaves: list[Raw]) -> Any:
    if not isinstance(tree, dict):
        return tree
    ((kind, content),) = tree.items()
    if kind == "tensor":
        return leaves[content]
    if kind == "bytes":
        return bytes(leaves[content].read())
    if kind == "dict":
        return {key: _restored(item, leaves) for key, item in content}
    items = [_restored(item, leaves) for item in content]
    return tuple(items) if kind == "tuple" else items


def mapped(value: Any, kind: type, function: Callable[[Any], Any]) -> Any:
    """`value` with `function` applied to everything of type `kind` in its dicts, lists and tuples."""
    if isinstance(value, kind):
        return function(value)
    if isinstance(value, Mapping):
        return {key: mapped(item, kind, function) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(mapped(item, kind, function) for item in value)
    return value
