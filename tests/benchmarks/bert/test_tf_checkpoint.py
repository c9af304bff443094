"""TensorFlow checkpoints that TensorFlow wrote (see make_tf_checkpoint.py), read without it."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from benchmarks.bert.crc32c import crc32c, masked_crc32c
from benchmarks.bert.tf_checkpoint import TensorflowCheckpoint
from tests.benchmarks.bert.make_tf_checkpoint import FOLDER, STEP, weights

INDEX, DATA = "model.ckpt-28.index", "model.ckpt-28.data-00000-of-00001"


@pytest.mark.parametrize(
    ("data", "expected"),
    [(b"", 0), (b"123456789", 0xE3069283), (bytes(32), 0x8A9136AA), (b"\xff" * 32, 0x62A8AB43)],
)
def test_checksums_are_those_of_rfc_3720(data: bytes, expected: int) -> None:
    assert crc32c(data) == expected


@pytest.mark.parametrize("size", [1023, 1024, 1025, 5000, 131_072, 300_001])
def test_checksums_by_rows_equal_those_by_bytes(size: int) -> None:
    data = np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8)
    state = 0xFFFFFFFF
    for byte in data.tolist():
        state ^= byte
        for _ in range(8):
            state = (state >> 1) ^ (0x82F63B78 if state & 1 else 0)
    assert crc32c(data) == state ^ 0xFFFFFFFF


def test_every_tensor_is_read_as_tensorflow_wrote_it() -> None:
    checkpoint = TensorflowCheckpoint(FOLDER / "model.ckpt-28")
    expected = weights()
    slots = {name for name in checkpoint.entries if name.endswith(("/adam_m", "/adam_v"))}
    assert checkpoint.entries.keys() == expected.keys() | slots | {"global_step"}
    assert len(slots) == 4
    for name, array in expected.items():
        np.testing.assert_array_equal(checkpoint.read(name), array, strict=True)
    assert checkpoint.read("global_step") == STEP


def test_tensors_of_several_data_files_are_found_and_slices_refused() -> None:
    checkpoint = TensorflowCheckpoint(FOLDER / "divided.ckpt")
    assert sorted(checkpoint.entries) == ["first", "second", "sliced"]
    assert {checkpoint.entries[name].shard for name in ("first", "second")} == {1, 2}
    assert checkpoint.read("first").tolist() == [0.0, 1.0, 2.0]
    assert checkpoint.read("second").tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(ValueError, match="the tensor sliced is cut into slices"):
        checkpoint.read("sliced")


def _flipped(content: bytes, place: int) -> bytes:
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


def _compressed(content: bytes) -> bytes:
    """The first block marked as compressed by snappy, with the checksum that belongs to it."""
    (end,) = (n for n in range(len(content)) if _is_first_trailer(content, n))
    block = content[:end] + b"\1"
    return block + struct.pack("<I", masked_crc32c(block)) + content[end + 5 :]


def _is_first_trailer(content: bytes, place: int) -> bool:
    crc = content[place + 1 : place + 5]
    return len(crc) == 4 and struct.unpack("<I", crc)[0] == masked_crc32c(content[: place + 1])


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        (INDEX, lambda content: content[:-1], "cut short, or another file"),
        (INDEX, lambda content: b"", "cut short, or another file"),
        (INDEX, lambda content: _flipped(content, 100), "a block's checksum differs"),
        (INDEX, _compressed, "compressed"),
        (DATA, lambda content: _flipped(content, 4000), "is damaged: its checksum differs"),
        (DATA, lambda content: content[:-4], "the file is cut short"),
    ],
    ids=["index cut", "index empty", "index damaged", "index compressed", "data damaged", "data cut"],
)
def test_damage_is_found(tmp_path: Path, file: str, change: Callable[[bytes], bytes], message: str) -> None:
    for name in (INDEX, DATA):
        shutil.copy(FOLDER / name, tmp_path / name)
    (tmp_path / file).write_bytes(change((FOLDER / file).read_bytes()))
    with pytest.raises(ValueError, match=message):
        _read_all(tmp_path / "model.ckpt-28")


def test_a_missing_data_file_is_named(tmp_path: Path) -> None:
    shutil.copy(FOLDER / INDEX, tmp_path / INDEX)
    with pytest.raises(OSError, match="data-00000-of-00001"):
        _read_all(tmp_path / "model.ckpt-28")


def _read_all(prefix: Path) -> None:
    checkpoint = TensorflowCheckpoint(prefix)
    for name in checkpoint.entries:
        checkpoint.read(name)
