"""One rank's batches: shuffled, divided among ranks and micro-batches, from any step on. The same for every case."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from benchmarks.driver.batches import Batch, Step
from benchmarks.driver.case import DataCase, Dataset
from benchmarks.driver.case_answers import case_error
from benchmarks.driver.sampling import Samples, ShuffledStream, all_samples, rank_steps
from utils.parameters import TrainingSettings


class Loader:
    """Makes the batches of `rank` out of what the case's data sets give.

    Args:
        case: whose data they are.
        settings: batch sizes, accumulation and the seed that the order follows from.
        rank: this one.
        world_size: ranks in all.
        staged: brings a batch's inputs to where the device fetches them fastest.

    Attributes:
        halves: the first micro-batch once more, in two; none of one sample. For who looks at it, and lets them go.
        evaluation_samples: of the whole evaluation set, over all ranks; None before the first evaluation.
    """

    def __init__(
        self,
        case: DataCase,
        settings: TrainingSettings,
        rank: int = 0,
        world_size: int = 1,
        staged: Callable[[Any], Any] = lambda inputs: inputs,
    ) -> None:
        self.case, self.settings = case, settings
        self.rank, self.world_size = rank, world_size
        self._staged = staged
        self._evaluation: list[Batch] | None = None
        self.halves: list[Batch] | None = None
        self.evaluation_samples: int | None = None

    def training_steps(self, first_step: int = 0) -> Iterator[Step]:
        """This rank's micro-batches of each optimizer step from `first_step` (from 0) on, endlessly.

        Every sample comes once an epoch. The order is the same whatever the number of ranks and micro-batches.
        """
        data = self._data_set("training_data")
        accumulation = self.settings.gradient_accumulation_steps
        stream = ShuffledStream(data.shards, data.rows_of, self.settings.seed)
        size = self.settings.train_batch_size * accumulation * self.world_size
        for micro_batches in rank_steps(
            stream.global_batches(size),
            rank=self.rank,
            world_size=self.world_size,
            accumulation=accumulation,
            first_step=first_step,
        ):
            step = [self._batch(data, samples) for samples in micro_batches]
            if self.halves is None:  # here, because a case's batches are made by one thread
                parts = [micro_batches[0].part(index, 2) for index in range(2)]
                self.halves = [self._batch(data, part) for part in parts] if all(map(len, parts)) else []
            yield step

    def epoch_steps(self, epoch: int, size: int) -> Iterator[Step]:
        """This rank's micro-batch of each step of one epoch (from 0) alone, whose last step ends with its last sample.

        Args:
            size: most samples of a global batch; all are of that size, or smaller by as little as divides the epoch.
        """
        data = self._data_set("training_data")
        batches = ShuffledStream(data.shards, data.rows_of, self.settings.seed).epoch_batches(epoch, size)
        for samples in batches:
            yield [self._batch(data, samples.part(self.rank, self.world_size))]

    def evaluation_batches(self) -> list[Batch]:
        """This rank's part of the evaluation set, each sample on exactly one rank; made once and kept."""
        if self._evaluation is None:
            data = self._data_set("evaluation_data")
            everything = all_samples([data.rows_of(shard) for shard in range(data.shards)])
            self.evaluation_samples = len(everything)
            batches = everything.part(self.rank, self.world_size).split(self.settings.eval_batch_size)
            self._evaluation = [self._batch(data, samples) for samples in batches]
        return self._evaluation

    def _data_set(self, method: str) -> Dataset:
        data = getattr(self.case, method)()
        if not isinstance(data, Dataset):
            raise case_error(
                self.case, f"{method} gave {data!r}", "return a Dataset (benchmarks/driver/case.py)"
            )
        return data

    def _batch(self, data: Dataset, samples: Samples) -> Batch:
        batch = data.batch(samples)
        if not isinstance(batch, Batch):
            remedy = "let Dataset.batch return a Batch (benchmarks/driver/batches.py)"
            raise case_error(self.case, f"a batch is {type(batch).__name__}", remedy)
        if batch.samples != len(samples):
            message = f"the batch of {len(samples)} samples says that it has {batch.samples}"
            raise case_error(
                self.case, message, "let Batch.samples be how many were asked for: rates are of them"
            )
        return replace(batch, inputs=self._staged(batch.inputs), epoch=samples.epoch)
