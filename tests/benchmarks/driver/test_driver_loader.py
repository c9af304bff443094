"""What the driver makes of a case's rows: every rank's batches, in any division, from any step on."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import pytest

from benchmarks.driver.batches import Batch
from benchmarks.driver.case import Dataset
from benchmarks.driver.loader import Loader
from benchmarks.driver.sampling import Samples
from utils.parameters import TrainingSettings

ROWS = [5, 9, 1, 7]  # 22 samples
SETTINGS = TrainingSettings(train_batch_size=6, eval_batch_size=4, seed=3)
Pair = tuple[int, int]


def batch_of(samples: Samples) -> Batch:
    """Its inputs are the places of its samples."""
    places = list(zip(samples.shards.tolist(), samples.rows.tolist(), strict=True))
    return Batch(places, len(samples), None, None, (float(len(samples)),))


@dataclass
class Case:
    """Rows in four shards to train on, and one set of eleven; counts how often it is asked for the latter."""

    asked: int = 0

    def training_data(self) -> Dataset:
        return Dataset(ROWS.__getitem__, batch_of, shards=len(ROWS))

    def evaluation_data(self) -> Dataset:
        self.asked += 1
        return Dataset(11, batch_of)

    def baseline(self) -> float | None:
        return None


def trained(
    settings: TrainingSettings, rank: int = 0, world_size: int = 1, first: int = 0
) -> list[list[Batch]]:
    """The steps from `first` to before 12."""
    steps = Loader(Case(), settings, rank, world_size).training_steps(first)
    return [list(step) for step in itertools.islice(steps, 12 - first)]


@pytest.mark.parametrize("world_size", [1, 2, 3])
def test_the_steps_of_one_epoch_end_with_its_last_sample(world_size: int) -> None:
    ranks = [list(Loader(Case(), SETTINGS, rank, world_size).epoch_steps(1, 6)) for rank in range(world_size)]
    divided = [[place for rank in ranks for place in rank[step][0].inputs] for step in range(4)]
    alone = places([list(step) for step in Loader(Case(), SETTINGS).epoch_steps(1, 6)])
    assert divided == alone and [len(step) for step in alone] == [5, 6, 5, 6]
    assert len({place for step in alone for place in step}) == sum(ROWS)


def places(steps: list[list[Batch]]) -> list[list[Pair]]:
    return [[place for batch in step for place in batch.inputs] for step in steps]


@pytest.mark.parametrize(("world_size", "accumulation"), [(1, 3), (2, 1), (2, 3), (3, 2)])
def test_each_global_batch_is_the_same_however_it_is_divided(world_size: int, accumulation: int) -> None:
    size = 6 // world_size // accumulation
    divided = replace(SETTINGS, train_batch_size=size, gradient_accumulation_steps=accumulation)
    ranks = [trained(divided, rank, world_size) for rank in range(world_size)]
    assert {len(step) for steps in ranks for step in steps} == {accumulation}
    together = [
        [place for part in parts for place in part] for parts in zip(*map(places, ranks), strict=True)
    ]
    assert together == places(trained(SETTINGS))


def test_a_run_that_goes_on_gets_the_batches_that_it_would_have_had() -> None:
    assert places(trained(SETTINGS, first=5)) == places(trained(SETTINGS))[5:]
    assert [step[0].epoch for step in trained(SETTINGS, first=5)] == [1, 1, 1, 2, 2, 2, 3]


@pytest.mark.parametrize("world_size", [1, 3, 16])
def test_the_evaluation_is_made_once_and_has_each_sample_on_one_rank(world_size: int) -> None:
    cases = [Case() for _ in range(world_size)]
    loaders = [Loader(case, SETTINGS, rank, world_size) for rank, case in enumerate(cases)]
    batches = [batch for loader in loaders for batch in loader.evaluation_batches()]
    assert [place for batch in batches for place in batch.inputs] == [(0, row) for row in range(11)]
    assert max(batch.samples for batch in batches) <= 4
    assert all(loader.evaluation_batches() is loader.evaluation_batches() for loader in loaders)
    assert [case.asked for case in cases] == [1] * world_size
    assert {loader.evaluation_samples for loader in loaders} == {11}


def test_inputs_are_staged_for_the_device() -> None:
    loader = Loader(Case(), SETTINGS, staged=len)
    assert next(loader.training_steps())[0].inputs == 6
    assert [batch.inputs for batch in loader.evaluation_batches()] == [4, 4, 3]
