"""Which sample is trained when, and on which rank.

The order is one stream for the whole run, the same whatever the number of ranks: global batch `s` holds
the stream's samples `s * size .. (s + 1) * size`, and the ranks divide each global batch among them. An
epoch is one pass; a batch may hold the end of one pass and the begin of the next, so that no sample is
dropped or repeated to fill it up.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from utils.errors import FlagPerfError

Indices = NDArray[np.int64]
SHUFFLED_TOGETHER = 16  # shards whose samples are shuffled together


@dataclass(frozen=True)
class Samples:
    """Where `n` samples lie: `shards` and `rows`, both (n,). `epoch` counts from 0, of the first of them."""

    epoch: int
    shards: Indices
    rows: Indices

    def __len__(self) -> int:
        return len(self.rows)

    def part(self, index: int, parts: int) -> Samples:
        """One of `parts` contiguous parts; their sizes differ by at most 1."""
        return self.cut(len(self) * index // parts, len(self) * (index + 1) // parts)

    def split(self, size: int) -> list[Samples]:
        """Batches of `size`; the last may be smaller."""
        return [self.cut(start, start + size) for start in range(0, len(self), size)]

    def cut(self, begin: int, end: int) -> Samples:
        """The samples from `begin` to before `end`."""
        return Samples(self.epoch, self.shards[begin:end], self.rows[begin:end])


_NONE = Samples(0, np.arange(0), np.arange(0))


def all_samples(rows_per_shard: list[int]) -> Samples:
    """Every sample once, in the order of the shards (evaluation)."""
    shards = np.repeat(np.arange(len(rows_per_shard)), rows_per_shard)
    rows = np.concatenate([np.arange(rows) for rows in rows_per_shard] or [np.arange(0)])
    return Samples(0, shards, rows)


@dataclass(frozen=True)
class ShuffledStream:
    """An endless stream of samples in an order that follows from `seed` alone.

    Each epoch shuffles the shards, takes `window` of them at a time and shuffles the samples of these
    together: a full shuffle while there are no more than `window` shards, and otherwise one that needs
    only so many shards at hand. `rows_of(shard)` is asked when the shard's window begins.
    """

    shard_count: int
    rows_of: Callable[[int], int]
    seed: int
    window: int = SHUFFLED_TOGETHER

    def global_batches(self, size: int) -> Iterator[Samples]:
        """The stream in pieces of `size`."""
        left = _NONE
        for window in self._windows():
            missing = size - len(left)
            pieces = [_joined(left, window.cut(0, missing)), *window.cut(missing, len(window)).split(size)]
            left = pieces.pop() if len(pieces[-1]) < size else _NONE
            yield from pieces

    def epoch_batches(self, epoch: int, size: int) -> list[Samples]:
        """One epoch alone, in as few pieces of at most `size` as can be; their sizes differ by at most 1."""
        samples = reduce(_joined, self._epoch_windows(epoch), _NONE)
        count = -(-len(samples) // size)
        return [samples.part(index, count) for index in range(count)]

    def _windows(self) -> Iterator[Samples]:
        for epoch in itertools.count():
            epoch_size = 0
            for window in self._epoch_windows(epoch):
                epoch_size += len(window)
                yield window
            if not epoch_size:
                raise FlagPerfError("the training data hold no sample")

    def _epoch_windows(self, epoch: int) -> Iterator[Samples]:
        generator = np.random.default_rng([self.seed, epoch])
        shards = generator.permutation(self.shard_count)
        for start in range(0, self.shard_count, self.window):
            yield self._window(epoch, shards[start : start + self.window], generator)

    def _window(self, epoch: int, shards: Indices, generator: np.random.Generator) -> Samples:
        counts = [self.rows_of(int(shard)) for shard in shards]
        rows = np.concatenate([np.arange(count) for count in counts])
        order = generator.permutation(len(rows))
        return Samples(epoch, np.repeat(shards, counts)[order], rows[order])


def _joined(first: Samples, second: Samples) -> Samples:
    if not len(first):
        return second
    return Samples(
        first.epoch,
        np.concatenate([first.shards, second.shards]),
        np.concatenate([first.rows, second.rows]),
    )


def rank_steps(
    batches: Iterator[Samples], *, rank: int, world_size: int, accumulation: int, first_step: int = 0
) -> Iterator[list[Samples]]:
    """For each global batch from number `first_step` on the micro-batches of one rank."""
    for batch in itertools.islice(batches, first_step, None):
        mine = batch.part(rank, world_size)
        yield [mine.part(index, accumulation) for index in range(accumulation)]
