"""The CPM case for the driver: model, data, loss, metric."""

from __future__ import annotations

import math
from functools import partial
from typing import ClassVar, cast

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.common.arrays import Array
from benchmarks.common.pytorch.transformer import load_checkpoint
from benchmarks.common.sample_files import SampleFiles
from benchmarks.common.shape import TransformerConfig, check_fits, configured
from benchmarks.cpm.chunks import (
    COLUMN,
    EVALUATION_FOLDER,
    TRAINING_FOLDER,
    chunk_arrays,
    chunk_files,
)
from benchmarks.cpm.flops import FORMULA, training_flops
from benchmarks.driver.batches import Batch
from benchmarks.driver.case import Dataset
from benchmarks.driver.pytorch.case import Context
from benchmarks.driver.sampling import Samples, all_samples

from .inputs import make_inputs
from .metric import embedding_average_sums
from .model import CpmInputs, CpmModel


class Case:
    """Causal language model on chunks of documents."""

    metric: ClassVar[str] = "embedding_average"
    flops_formula: ClassVar[str] = FORMULA

    def __init__(self, context: Context) -> None:
        self.context = context
        self.model_config = configured(TransformerConfig, context.settings)
        self._commonest = 0
        self._baseline: float | None = None

    def build_model(self) -> nn.Module:
        """CPM with the initial checkpoint's weights, or random ones where none is configured."""
        model = CpmModel(self.model_config)
        checkpoint = self.context.settings.get("init_checkpoint")
        if checkpoint:
            load_checkpoint(model, self.context.data_dir / checkpoint, case="cpm")
        return model

    def training_data(self) -> Dataset:
        """The chunks of the training set."""
        return self._dataset(self._files(TRAINING_FOLDER))

    def evaluation_data(self) -> Dataset:
        """The chunks of the evaluation set, whose commonest label is the trivial answer."""
        files = self._files(EVALUATION_FOLDER)
        everything = all_samples([files.rows(number) for number in range(len(files.files))])
        self._commonest = commonest_label(files.read(everything)[COLUMN])
        return self._dataset(files)

    def baseline(self) -> float | None:
        """The embedding average of always answering with the evaluation set's commonest label.

        It depends on the embedding, so it is that of the last evaluation; None before the first.
        """
        return self._baseline

    def loss(self, model: nn.Module, inputs: CpmInputs) -> Tensor:
        """(1,): cross entropy summed over the labels."""
        total: Tensor = model(inputs)
        return total.reshape(1)

    def evaluate(self, model: nn.Module, inputs: CpmInputs) -> Tensor:
        """(7,) float64: scores and scored samples of the model and of the baseline, right tokens, tokens, loss."""
        cpm = cast(CpmModel, model)
        predicted, loss = cpm.predict(inputs)
        always = torch.full_like(predicted, self._commonest)
        right, embedding = inputs.labels, cpm.word_embeddings.weight
        scores, baseline = (
            embedding_average_sums(tokens, right, inputs.layout.offsets, embedding)
            for tokens in (predicted, always)
        )
        counts = torch.stack([(predicted == right).sum().double(), loss.double()])
        tokens = torch.full((1,), right.numel(), dtype=torch.float64, device=counts.device)
        return torch.cat([scores, baseline, counts, tokens])

    def metrics(self, sums: list[float]) -> dict[str, float]:
        """The mean score over samples, that of the baseline, token accuracy, mean loss in nats, perplexity."""
        score, samples, baseline, baseline_samples, right, loss, tokens = sums
        self._baseline = baseline / baseline_samples
        return {
            "embedding_average": score / samples,
            "baseline_embedding_average": self._baseline,
            "token_accuracy": right / tokens,
            "eval_loss": loss / tokens,
            "perplexity": math.exp(min(loss / tokens, 700.0)),
        }

    def _files(self, folder: str) -> SampleFiles:
        return chunk_files(self.context.data_dir / folder)

    def _dataset(self, files: SampleFiles) -> Dataset:
        return Dataset(files.rows, partial(self._batch, files), shards=len(files.files))

    def _batch(self, files: SampleFiles, samples: Samples) -> Batch:
        arrays = chunk_arrays(files.read(samples)[COLUMN])
        check_fits(
            self.model_config,
            longest=arrays.inputs.shape[1],
            largest_id=max(int(arrays.inputs.max(initial=0)), int(arrays.labels.max(initial=0))),
            data_dir=self.context.data_dir,
        )
        return Batch(
            inputs=make_inputs(arrays, ragged=self.context.ragged_attention),
            samples=len(samples),
            tokens=len(arrays.labels),
            flops=training_flops(self.model_config, arrays.lengths),
            loss_counts=(float(len(arrays.labels)),),
        )


def commonest_label(chunks: Array) -> int:
    """The token that is most often a label in `chunks`; the least of several."""
    return int(np.bincount(chunk_arrays(chunks).labels).argmax())
