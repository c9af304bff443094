from __future__ import annotations

import itertools

import numpy as np
import pytest

from benchmarks.driver.sampling import Samples, ShuffledStream, all_samples, rank_steps
from utils.errors import FlagPerfError

ROWS = [5, 9, 1, 7]  # 22 samples


def _stream(seed: int = 1, window: int = 16) -> ShuffledStream:
    return ShuffledStream(len(ROWS), ROWS.__getitem__, seed, window)


def _pairs(batches: list[Samples]) -> list[tuple[int, int]]:
    return [
        pair for batch in batches for pair in zip(batch.shards.tolist(), batch.rows.tolist(), strict=True)
    ]


@pytest.mark.parametrize("window", [1, 2, 16])
def test_every_sample_comes_once_an_epoch(window: int) -> None:
    seen = _pairs(list(itertools.islice(_stream(window=window).global_batches(4), 11)))  # two epochs
    everything = sorted(_pairs([all_samples(ROWS)]))
    assert sorted(seen[:22]) == sorted(seen[22:]) == everything
    assert seen[:22] != seen[22:]


def test_the_order_follows_from_the_seed_and_not_from_the_batch_size() -> None:
    small = _pairs(list(itertools.islice(_stream().global_batches(2), 30)))
    large = _pairs(list(itertools.islice(_stream().global_batches(6), 10)))
    assert small == large
    assert small != _pairs(list(itertools.islice(_stream(seed=2).global_batches(2), 30)))


@pytest.mark.parametrize(("world_size", "accumulation"), [(1, 1), (1, 3), (2, 1), (2, 3), (4, 2)])
def test_ranks_divide_each_global_batch_without_overlap(world_size: int, accumulation: int) -> None:
    whole = list(itertools.islice(_stream().global_batches(24), 5))
    ranks = [
        list(
            itertools.islice(
                rank_steps(
                    _stream().global_batches(24), rank=rank, world_size=world_size, accumulation=accumulation
                ),
                5,
            )
        )
        for rank in range(world_size)
    ]
    for number, batch in enumerate(whole):
        parts = [micro for rank in ranks for micro in rank[number]]
        assert {len(part) for part in parts} == {24 // world_size // accumulation}
        assert _pairs(parts) == _pairs([batch])


@pytest.mark.parametrize("size", [1, 4, 5, 22, 100])
def test_an_epoch_alone_has_every_sample_once_in_pieces_that_are_nearly_alike(size: int) -> None:
    stream = _stream(window=2)
    epochs = [stream.epoch_batches(epoch, size) for epoch in (0, 1)]
    for epoch, batches in enumerate(epochs):
        assert sorted(_pairs(batches)) == sorted(_pairs([all_samples(ROWS)]))
        assert {batch.epoch for batch in batches} == {epoch}
        sizes = [len(batch) for batch in batches]
        assert len(sizes) == -(-22 // size) and max(sizes) <= size and max(sizes) - min(sizes) <= 1
    assert _pairs(epochs[0]) != _pairs(epochs[1])
    assert _pairs(epochs[0]) == _pairs(list(itertools.islice(stream.global_batches(1), 22)))


def test_a_batch_belongs_to_the_epoch_of_its_first_sample() -> None:
    epochs = [batch.epoch for batch in itertools.islice(_stream().global_batches(8), 6)]
    assert epochs == [0, 0, 0, 1, 1, 1]  # 22 samples: the third batch ends in epoch 1


@pytest.mark.parametrize(("samples", "world_size"), [(22, 1), (22, 4), (22, 5), (3, 8)])
def test_evaluation_covers_each_sample_exactly_once(samples: int, world_size: int) -> None:
    everything = all_samples([samples])
    parts = [everything.part(rank, world_size) for rank in range(world_size)]
    assert _pairs([batch for part in parts for batch in part.split(4)]) == _pairs([everything])
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_a_global_batch_may_be_larger_than_the_data() -> None:
    batch = next(_stream().global_batches(50))
    counts = np.unique(batch.shards * 100 + batch.rows, return_counts=True)[1]
    assert len(batch) == 50
    assert set(counts.tolist()) == {2, 3}  # twice each, and six of the third epoch


def test_data_without_samples_is_an_error_and_not_an_endless_wait() -> None:
    with pytest.raises(FlagPerfError, match="no sample"):
        next(ShuffledStream(2, lambda shard: 0, seed=1).global_batches(2))
    with pytest.raises(FlagPerfError, match="no sample"):
        next(ShuffledStream(0, lambda shard: 0, seed=1).global_batches(2))
