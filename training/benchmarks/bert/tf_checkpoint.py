"""Read the tensors of a TensorFlow checkpoint (a tensor bundle, as TensorFlow 1.0 and later write), without TensorFlow.

`<prefix>.index` is a table in LevelDB's format: from a tensor's name to where it lies (`BundleEntryProto`), and from
the empty name to a header (`BundleHeaderProto`). `<prefix>.data-<i>-of-<n>` hold the tensors' bytes. Forms and field
numbers are those of TensorFlow's `tensor_bundle.proto` and `tensor_shape.proto` and of LevelDB's `table_format.md`.
Each block of the index and each tensor has its CRC-32C, which is checked.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.bert.crc32c import masked_crc32c

_FOOTER_SIZE, _MAGIC = 48, 0xDB4775248B80FB57
_NO_COMPRESSION = 0  # TensorFlow has never compressed a bundle's index
_LITTLE_ENDIAN = 0
_DTYPES = {1: "<f4", 2: "<f8", 3: "<i4", 9: "<i8", 19: "<f2"}  # of types.proto's DataType

Message = dict[int, list[Any]]  # a protocol buffer: field number -> its values


@dataclass(frozen=True)
class Entry:
    """Where a tensor lies: `offset` and `size` in bytes in the data file `shard`; `crc` as stored, masked."""

    dtype: int
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int
    crc: int
    is_sliced: bool


class TensorflowCheckpoint:
    """The tensors under `prefix`: its index is read at once, a tensor when it is asked for.

    Raises:
        OSError, ValueError: a file is missing, cut short or damaged, or not of this format.
    """

    def __init__(self, prefix: Path) -> None:
        self.prefix = prefix
        table = dict(_table_of(prefix.with_name(prefix.name + ".index").read_bytes()))
        header = _message(table.pop(b"", b""))
        self._shards = _number(header, 1)
        if not self._shards or _number(header, 2) != _LITTLE_ENDIAN:
            raise ValueError("the index has no header of a little-endian tensor bundle")
        # The slices of a variable stand under keys of their own, which begin with 0.
        self.entries = {n.decode(): _entry(value) for n, value in table.items() if not n.startswith(b"\0")}
        self._files: dict[int, NDArray[Any]] = {}

    def read(self, name: str) -> NDArray[Any]:
        """The tensor `name`; what is returned is only mapped into memory."""
        entry = self.entries[name]
        if entry.is_sliced or entry.dtype not in _DTYPES:
            what = "is cut into slices" if entry.is_sliced else f"is of TensorFlow's data type {entry.dtype}"
            raise ValueError(f"the tensor {name} {what}, which is not read here")
        memory = self._file(entry.shard)[entry.offset : entry.offset + entry.size]
        dtype = np.dtype(_DTYPES[entry.dtype])
        if len(memory) != entry.size or entry.size != dtype.itemsize * int(np.prod(entry.shape, dtype=int)):
            raise ValueError(
                f"the tensor {name} of shape {entry.shape} has {len(memory)} bytes: the file is cut short"
            )
        if masked_crc32c(memory) != entry.crc:
            raise ValueError(f"the tensor {name} is damaged: its checksum differs")
        return memory.view(dtype).reshape(entry.shape)

    def _file(self, shard: int) -> NDArray[Any]:
        if shard not in self._files:
            name = f"{self.prefix.name}.data-{shard:05d}-of-{self._shards:05d}"
            self._files[shard] = np.memmap(self.prefix.with_name(name), dtype=np.uint8, mode="r")
        return self._files[shard]


def _entry(value: bytes) -> Entry:
    message = _message(value)
    shape = _message(message.get(2, [b""])[0])
    return Entry(
        dtype=_number(message, 1),
        shape=tuple(_number(_message(dimension), 1) for dimension in shape.get(2, [])),
        shard=_number(message, 3),
        offset=_number(message, 4),
        size=_number(message, 5),
        crc=_number(message, 6),
        is_sliced=7 in message,
    )


def _table_of(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values of a table: its footer leads to the index of its blocks, and that to the blocks."""
    footer = content[-_FOOTER_SIZE:]
    if len(footer) < _FOOTER_SIZE or struct.unpack("<Q", footer[-8:])[0] != _MAGIC:
        raise ValueError("the index does not end as a TensorFlow checkpoint's: cut short, or another file")
    _, place = _handle(footer, 0)  # of the meta index, which is empty
    index, _ = _handle(footer, place)
    for _, handle in _block(content, *index):
        yield from _block(content, *_handle(handle, 0)[0])


def _handle(content: bytes, place: int) -> tuple[tuple[int, int], int]:
    """A block's offset and size, and where what follows begins."""
    offset, place = _varint(content, place)
    size, place = _varint(content, place)
    return (offset, size), place


def _block(content: bytes, offset: int, size: int) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values of a block. A key is kept as how much it shares with the one before, and the rest."""
    block, trailer = content[offset : offset + size], content[offset + size : offset + size + 5]
    if len(trailer) < 5 or masked_crc32c(block + trailer[:1]) != struct.unpack("<I", trailer[1:])[0]:
        raise ValueError("the index is damaged: a block's checksum differs")
    if trailer[0] != _NO_COMPRESSION:
        raise ValueError(f"the index is compressed (kind {trailer[0]}), which TensorFlow itself does not do")
    restarts = struct.unpack("<I", block[-4:])[0]
    end, place, key = len(block) - 4 * (restarts + 1), 0, b""
    while place < end:
        shared, place = _varint(block, place)
        unshared, place = _varint(block, place)
        length, place = _varint(block, place)
        key = key[:shared] + block[place : place + unshared]
        place += unshared
        yield key, block[place : place + length]
        place += length


def _message(content: bytes) -> Message:
    """A protocol buffer's fields: numbers, and bytes that may be a message in turn."""
    found: Message = {}
    place = 0
    while place < len(content):
        tag, place = _varint(content, place)
        number, kind = tag >> 3, tag & 7
        value: Any
        if kind == 0:
            value, place = _varint(content, place)
        elif kind == 2:
            length, place = _varint(content, place)
            value, place = content[place : place + length], place + length
        elif kind in (1, 5):
            width = 8 if kind == 1 else 4
            value, place = int.from_bytes(content[place : place + width], "little"), place + width
        else:
            raise ValueError(f"the index holds a field of the unknown kind {kind}")
        found.setdefault(number, []).append(value)
    return found


def _number(message: Message, field: int) -> int:
    """The last value of a field; 0 where it is left out, as protocol buffers do with zeros."""
    return int(message.get(field, [0])[-1])


def _varint(content: bytes, place: int) -> tuple[int, int]:
    """A number of 7 bits a byte, least first, and where what follows begins."""
    value = shift = 0
    while True:
        if place >= len(content):
            raise ValueError("the index is cut short within a number")
        byte = content[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place
