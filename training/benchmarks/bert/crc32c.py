"""CRC-32C (Castagnoli, RFC 3720 appendix B.4), with which TensorFlow's files protect themselves.

numpy has none, and a loop over bytes in Python would take ten minutes for BERT-large. The checksum is linear: with
Z_k(s) the state s after 4k more bytes of zeros, words w_0 ... w_(n-1) of 4 bytes give, from state 0, the sum (xor)
of Z_(n-i)(w_i). So rows of `k` words are folded into one row, whose words all go the same way: a -> Z_k(a) ^ row.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

_POLYNOMIAL = 0x82F63B78  # reflected
_LANES = (1 << 15, 1 << 8)  # words in a row: 128 KiB stay in the caches; then what is left
_MASK_DELTA = 0xA282EAD8

Words = NDArray[Any]


def crc32c(data: Any) -> int:
    """The checksum of `data`, any buffer of bytes."""
    return _advance(0xFFFFFFFF, memoryview(data).cast("B"), _LANES) ^ 0xFFFFFFFF


def masked_crc32c(data: Any) -> int:
    """As LevelDB and TensorFlow store it: a checksum of data that hold their own checksum would be a weak one."""
    crc = crc32c(data)
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF


def _advance(state: int, data: memoryview, lanes: tuple[int, ...]) -> int:
    """The state after `data`; `lanes` are the widths to fold with, widest first."""
    if not lanes:
        table = _byte_table()
        for byte in data:
            state = int(table[(state ^ byte) & 0xFF]) ^ (state >> 8)
        return state
    width, *narrower = lanes
    count = len(data) // (4 * width)
    if count:
        rows = np.frombuffer(data, dtype="<u4", count=count * width).reshape(count, width)
        state = _advance(0, memoryview(_folded(rows, state).tobytes()), tuple(narrower))
    return _advance(state, data[4 * count * width :], tuple(narrower))


def _folded(rows: Words, state: int) -> Words:
    """One row that stands for all `rows` after `state`."""
    low, high = _zero_tables(rows.shape[1])
    folded: Words = rows[0].copy()
    folded[0] ^= np.uint32(state)
    for row in rows[1:]:
        folded = low[folded & 0xFFFF] ^ high[folded >> 16] ^ row
    return folded


@cache
def _byte_table() -> Words:
    """The state after one byte, from that byte."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = (table >> 1) ^ np.where(table & 1, np.uint32(_POLYNOMIAL), np.uint32(0))
    return table


@cache
def _zero_tables(words: int) -> tuple[Words, Words]:
    """The state after `words` (a power of two) words of zeros, from the state's low and from its high half."""
    bits = np.uint32(1) << np.arange(32, dtype=np.uint32)
    images = bits
    for _ in range(4):
        images = _byte_table()[images & 0xFF] ^ (images >> 8)  # after one byte, of each single bit
    while words > 1:
        images, words = _mapped(images, images), words // 2
    halves = np.arange(1 << 16, dtype=np.uint32)
    return _mapped(images, halves), _mapped(images, halves << 16)


def _mapped(images: Words, values: Words) -> Words:
    """The linear map with `images` of the 32 single bits, applied to each of `values`."""
    result = np.zeros_like(values)
    for bit, image in enumerate(images):
        result ^= np.where((values >> np.uint32(bit)) & 1, image, np.uint32(0))
    return result
