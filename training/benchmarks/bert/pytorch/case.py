"""The BERT case for the driver: model, data, loss, metric."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.bert.arrays import PretrainingArrays, pretraining_arrays
from benchmarks.bert.flops import FORMULA, BertFlops
from benchmarks.bert.shards import EVALUATION_FILE, ShardFiles, open_shard, training_files
from benchmarks.driver.batches import Batch, Step
from benchmarks.driver.pytorch.case import Context
from benchmarks.driver.pytorch.tensors import pinned
from benchmarks.driver.sampling import Samples, ShuffledStream, all_samples, rank_steps
from utils.errors import FlagPerfError

from .inputs import make_inputs
from .model import BertConfig, BertForPreTraining, BertInputs, pretraining_loss_sums
from .weights import load_checkpoint

_SHUFFLED_TOGETHER = 16  # shards whose samples are shuffled together, and which stay open


class Case:
    """Masked language model and next sentence prediction on HDF5 shards."""

    metric: ClassVar[str] = "mlm_accuracy"
    flops_formula: ClassVar[str] = FORMULA

    def __init__(self, context: Context) -> None:
        self.context = context
        names = {field.name for field in fields(BertConfig)}
        self.model_config = BertConfig(**{n: v for n, v in context.settings.items() if n in names})
        self.flops = BertFlops(
            layers=self.model_config.num_hidden_layers,
            hidden=self.model_config.hidden_size,
            intermediate=self.model_config.intermediate_size,
            vocabulary=self.model_config.vocab_size,
        )
        self._evaluation: list[Batch] | None = None

    def build_model(self) -> nn.Module:
        """BERT with the initial checkpoint's weights, or random ones where none is configured."""
        model = BertForPreTraining(self.model_config)
        checkpoint = self.context.settings.get("init_checkpoint")
        if checkpoint:
            load_checkpoint(model, self.context.data_dir / checkpoint)
        return model

    def training_steps(self) -> Iterator[Step]:
        """This rank's micro-batches, endlessly; every sample once an epoch."""
        context, settings = self.context, self.context.driver
        files = ShardFiles(training_files(context.data_dir), keep=_SHUFFLED_TOGETHER)
        stream = ShuffledStream(len(files.files), files.rows, settings.seed, _SHUFFLED_TOGETHER)
        global_size = settings.train_batch_size * settings.gradient_accumulation_steps * context.world_size
        for micro_batches in rank_steps(
            stream.global_batches(global_size),
            rank=context.rank,
            world_size=context.world_size,
            accumulation=settings.gradient_accumulation_steps,
        ):
            yield [self._batch(files, samples) for samples in micro_batches]

    def baseline(self) -> float:
        """Accuracy of always answering with the evaluation set's commonest label."""
        shard = open_shard(self.context.data_dir / EVALUATION_FILE)
        labels = shard["masked_lm_ids"][shard["masked_lm_positions"] > 0]
        return float(np.bincount(labels).max() / len(labels))

    def evaluation_batches(self) -> list[Batch]:
        """This rank's part of the evaluation set, read once and kept."""
        if self._evaluation is None:
            files = ShardFiles([self.context.data_dir / EVALUATION_FILE])
            mine = all_samples([files.rows(0)]).part(self.context.rank, self.context.world_size)
            batches = mine.split(self.context.driver.eval_batch_size)
            self._evaluation = [self._batch(files, samples) for samples in batches]
        return self._evaluation

    def loss(self, model: nn.Module, inputs: BertInputs) -> Tensor:
        """(2,): cross entropy summed over masked tokens, and over samples."""
        masked, next_sentence = model(inputs)
        return pretraining_loss_sums(masked, next_sentence, inputs)

    def evaluate(self, model: nn.Module, inputs: BertInputs) -> Tensor:
        """(6,): right tokens, tokens, right next sentences, samples, and the two losses' sums."""
        masked, next_sentence = model(inputs)
        right = (masked.argmax(dim=-1) == inputs.labels).sum()
        right_pairs = (next_sentence.argmax(dim=-1) == inputs.next_sentence_labels).sum()
        counts = torch.tensor([inputs.labels.numel(), inputs.layout.batch], device=masked.device)
        losses = pretraining_loss_sums(masked, next_sentence, inputs)
        return torch.cat([torch.stack([right, counts[0], right_pairs, counts[1]]).float(), losses])

    def metrics(self, sums: list[float]) -> dict[str, float]:
        """Accuracies over all masked tokens and all samples of the evaluation set, and the mean loss."""
        right, tokens, right_pairs, samples, token_loss, pair_loss = sums
        return {
            "mlm_accuracy": right / tokens,
            "nsp_accuracy": right_pairs / samples,
            "eval_loss": token_loss / tokens + pair_loss / samples,
        }

    def _batch(self, files: ShardFiles, samples: Samples) -> Batch:
        arrays = pretraining_arrays(files.read(samples))
        self._check_fits(arrays)
        predictions = (arrays.positions > 0).sum(axis=1)
        on_cpu = self.context.device.type == "cpu"
        inputs = make_inputs(arrays, ragged=not on_cpu)
        return Batch(
            inputs=inputs if on_cpu else pinned(inputs),
            samples=len(samples),
            tokens=int(arrays.lengths.sum()),
            flops=self.flops.of(arrays.lengths, predictions),
            loss_counts=(float(len(arrays.labels)), float(len(samples))),
            epoch=samples.epoch,
        )

    def _check_fits(self, arrays: PretrainingArrays) -> None:
        """The data are of this model's vocabulary and length: a device would only say that an index is wrong."""
        config, (_, length) = self.model_config, arrays.input_ids.shape
        largest = max(int(arrays.input_ids.max()), int(arrays.labels.max(initial=0)))
        if largest >= config.vocab_size or length > config.max_position_embeddings:
            raise FlagPerfError(
                f"a sample has {length} tokens and token id {largest}; the model takes "
                f"{config.max_position_embeddings} tokens and ids below {config.vocab_size}",
                where=str(self.context.data_dir),
                remedy="set vocab_size and max_position_embeddings as the data were prepared",
            )
