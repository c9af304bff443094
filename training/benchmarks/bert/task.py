"""BERT pre-training as a task, whatever the framework: which samples, what counts, what is measured."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from benchmarks.bert.arrays import PretrainingArrays, pretraining_arrays
from benchmarks.bert.flops import FORMULA, training_flops
from benchmarks.bert.shape import BertConfig
from benchmarks.bert.shards import EVALUATION_FILE, open_shard, training_files
from benchmarks.common.sample_files import SampleFiles
from benchmarks.common.shape import check_fits, configured
from benchmarks.driver.batches import Batch
from benchmarks.driver.case import Context, Dataset, InitialMetric
from benchmarks.driver.sampling import Samples
from utils.parameters import TrainingSettings


class PretrainingTask(ABC):
    """Masked language model and next sentence prediction on HDF5 shards.

    A framework's case adds the model, the inputs that it takes, its loss, and its answers' counts.
    """

    metric: ClassVar[str] = "mlm_accuracy"
    flops_formula: ClassVar[str] = FORMULA

    def __init__(self, context: Context[TrainingSettings, Any]) -> None:
        self.task = context
        self.model_config = configured(BertConfig, context.settings)

    @abstractmethod
    def inputs(self, arrays: PretrainingArrays) -> Any:
        """What the framework's model takes."""

    def initial_checkpoint(self) -> Path | None:
        """The file with the weights that training starts from; None: random weights."""
        name = self.task.settings.get("init_checkpoint")
        return self.task.data_dir / name if name else None

    def training_data(self) -> Dataset:
        """The shards of the training set."""
        return self._dataset(training_files(self.task.data_dir))

    def evaluation_data(self) -> Dataset:
        """The evaluation set, one shard."""
        return self._dataset([self.task.data_dir / EVALUATION_FILE])

    def baseline(self) -> float:
        """Accuracy of always answering with the evaluation set's commonest label."""
        shard = open_shard(self.task.data_dir / EVALUATION_FILE)
        labels = shard["masked_lm_ids"][shard["masked_lm_positions"] > 0]
        return float(np.bincount(labels).max() / len(labels))

    def initial_metric(self) -> InitialMetric | None:
        """The accuracy that is published for the initial checkpoint; None for another one, or random weights."""
        checkpoint = self.initial_checkpoint()
        published = self.task.settings.get("checkpoint_mlm_accuracy", {})
        if checkpoint is None or checkpoint.name not in published:
            return None
        return InitialMetric(
            published[checkpoint.name], self.task.settings["checkpoint_tolerance"], checkpoint
        )

    def metrics(self, sums: list[float]) -> dict[str, float]:
        """Accuracies over all masked tokens and all samples of the evaluation set, and the mean loss.

        Args:
            sums: right tokens, tokens, right next sentences, samples, and the two losses' sums.
        """
        right, tokens, right_pairs, samples, token_loss, pair_loss = sums
        return {
            "mlm_accuracy": right / tokens,
            "nsp_accuracy": right_pairs / samples,
            "eval_loss": token_loss / tokens + pair_loss / samples,
        }

    def _dataset(self, paths: list[Path]) -> Dataset:
        files = SampleFiles(paths, open_shard)
        return Dataset(files.rows, partial(self._batch, files), shards=len(paths))

    def _batch(self, files: SampleFiles, samples: Samples) -> Batch:
        arrays = pretraining_arrays(files.read(samples))
        check_fits(
            self.model_config,
            longest=arrays.input_ids.shape[1],
            largest_id=max(int(arrays.input_ids.max()), int(arrays.labels.max(initial=0))),
            data_dir=self.task.data_dir,
        )
        predictions = (arrays.positions > 0).sum(axis=1)
        return Batch(
            inputs=self.inputs(arrays),
            samples=len(samples),
            tokens=int(arrays.lengths.sum()),
            flops=training_flops(self.model_config, arrays.lengths, predictions),
            loss_counts=(float(len(arrays.labels)), float(len(samples))),
        )
