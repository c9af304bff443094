"""The CPM case for the driver: model, data, loss, metric."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields
from typing import ClassVar, cast

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.cpm.chunks import (
    EVALUATION_FOLDER,
    TRAINING_FOLDER,
    Array,
    ChunkArrays,
    ChunkFiles,
    chunk_arrays,
    chunk_files,
)
from benchmarks.cpm.flops import FORMULA, CpmFlops
from benchmarks.driver.batches import Batch, Step
from benchmarks.driver.pytorch.case import Context
from benchmarks.driver.pytorch.tensors import pinned
from benchmarks.driver.sampling import Samples, ShuffledStream, all_samples, rank_steps
from utils.errors import FlagPerfError

from .inputs import make_inputs
from .metric import embedding_average_sums
from .model import CpmConfig, CpmInputs, CpmModel
from .weights import load_checkpoint


class Case:
    """Causal language model on chunks of documents."""

    metric: ClassVar[str] = "embedding_average"
    flops_formula: ClassVar[str] = FORMULA

    def __init__(self, context: Context) -> None:
        self.context = context
        names = {field.name for field in fields(CpmConfig)}
        self.model_config = CpmConfig(**{n: v for n, v in context.settings.items() if n in names})
        self.flops = CpmFlops(
            layers=self.model_config.num_layers,
            hidden=self.model_config.hidden_size,
            vocabulary=self.model_config.vocab_size,
        )
        self._evaluation: list[Batch] | None = None
        self._commonest = 0
        self._baseline: float | None = None

    def build_model(self) -> nn.Module:
        """CPM with the initial checkpoint's weights, or random ones where none is configured."""
        model = CpmModel(self.model_config)
        checkpoint = self.context.settings.get("init_checkpoint")
        if checkpoint:
            load_checkpoint(model, self.context.data_dir / checkpoint)
        return model

    def training_steps(self, first_step: int = 0) -> Iterator[Step]:
        """This rank's micro-batches from `first_step` on, endlessly; every sample once an epoch."""
        context, settings = self.context, self.context.driver
        files = self._files(TRAINING_FOLDER)
        stream = ShuffledStream(len(files.files), files.rows, settings.seed)
        global_size = settings.train_batch_size * settings.gradient_accumulation_steps * context.world_size
        for micro_batches in rank_steps(
            stream.global_batches(global_size),
            rank=context.rank,
            world_size=context.world_size,
            accumulation=settings.gradient_accumulation_steps,
            first_step=first_step,
        ):
            yield [self._batch(files.read(samples), samples) for samples in micro_batches]

    def baseline(self) -> float | None:
        """The embedding average of always answering with the evaluation set's commonest label.

        It depends on the embedding, so it is that of the last evaluation; None before the first.
        """
        return self._baseline

    def evaluation_batches(self) -> list[Batch]:
        """This rank's part of the evaluation set, read once and kept."""
        if self._evaluation is None:
            files = self._files(EVALUATION_FOLDER)
            everything = all_samples([files.rows(number) for number in range(len(files.files))])
            self._commonest = commonest_label(files.read(everything))
            mine = everything.part(self.context.rank, self.context.world_size)
            batches = mine.split(self.context.driver.eval_batch_size)
            self._evaluation = [self._batch(files.read(samples), samples) for samples in batches]
        return self._evaluation

    def loss(self, model: nn.Module, inputs: CpmInputs) -> Tensor:
        """(1,): cross entropy summed over the labels."""
        total: Tensor = model(inputs)
        return total.reshape(1)

    def evaluate(self, model: nn.Module, inputs: CpmInputs) -> Tensor:
        """(7,) float64: scores and scored samples of the model and of the baseline, right tokens, tokens, loss."""
        cpm = cast(CpmModel, model)
        predicted, loss = cpm.predict(inputs)
        always = torch.full_like(predicted, self._commonest)
        right, embedding = inputs.labels, cpm.word.weight
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

    def _files(self, folder: str) -> ChunkFiles:
        return ChunkFiles(chunk_files(self.context.data_dir / folder))

    def _batch(self, chunks: Array, samples: Samples) -> Batch:
        arrays = chunk_arrays(chunks)
        self._check_fits(arrays)
        kind = self.context.device.type
        inputs = make_inputs(arrays, ragged=kind == "cuda")
        return Batch(
            inputs=inputs if kind == "cpu" else pinned(inputs),
            samples=len(samples),
            tokens=len(arrays.labels),
            flops=self.flops.of(arrays.lengths),
            loss_counts=(float(len(arrays.labels)),),
            epoch=samples.epoch,
        )

    def _check_fits(self, arrays: ChunkArrays) -> None:
        """The data are of this model's vocabulary and length: a device would only say that an index is wrong."""
        config, longest = self.model_config, arrays.inputs.shape[1]
        largest = max(int(arrays.inputs.max(initial=0)), int(arrays.labels.max(initial=0)))
        if largest >= config.vocab_size or longest > config.max_position_embeddings:
            raise FlagPerfError(
                f"a sample has {longest} inputs and token id {largest}; the model takes "
                f"{config.max_position_embeddings} inputs and ids below {config.vocab_size}",
                where=str(self.context.data_dir),
                remedy="set vocab_size and max_position_embeddings as the data were prepared",
            )


def commonest_label(chunks: Array) -> int:
    """The token that is most often a label in `chunks`; the least of several."""
    return int(np.bincount(chunk_arrays(chunks).labels).argmax())
