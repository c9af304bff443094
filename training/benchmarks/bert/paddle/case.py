"""The BERT case on Paddle: model, inputs, loss, evaluation. The task itself is `benchmarks.bert.task`."""

from __future__ import annotations

import paddle
from paddle import Tensor, nn

from benchmarks.bert.arrays import PretrainingArrays
from benchmarks.bert.task import PretrainingTask
from benchmarks.driver.paddle.case import Context

from .inputs import make_inputs
from .model import BertForPreTraining, Inputs, pretraining_loss_sums
from .weights import load_checkpoint

# What the variable-length attention kernel computes in, where there is one.
_RAGGED_TYPES = {"bf16": "bfloat16", "fp16": "float16"}


class Case(PretrainingTask):
    """Masked language model and next sentence prediction."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        on_gpu = context.device.startswith("gpu")
        self.pinned = on_gpu
        self.ragged_type = _RAGGED_TYPES.get(context.driver.precision) if on_gpu else None

    def build_model(self) -> nn.Layer:
        """BERT with the initial checkpoint's weights, or random ones where none is configured."""
        model = BertForPreTraining(self.model_config)
        checkpoint = self.initial_checkpoint()
        if checkpoint:
            load_checkpoint(model, checkpoint)
        return model

    def inputs(self, arrays: PretrainingArrays) -> Inputs:
        """Tensors in the layout that the device is fastest with."""
        return make_inputs(arrays, ragged_type=self.ragged_type, pinned=self.pinned)

    def loss(self, model: nn.Layer, inputs: Inputs) -> Tensor:
        """(2,): cross entropy summed over masked tokens, and over samples."""
        masked, next_sentence = model(inputs)
        return pretraining_loss_sums(masked, next_sentence, inputs)

    def evaluate(self, model: nn.Layer, inputs: Inputs) -> Tensor:
        """(6,): right tokens, tokens, right next sentences, samples, and the two losses' sums."""
        masked, next_sentence = model(inputs)
        right = (masked.argmax(axis=-1) == inputs.labels).astype("float32").sum()
        right_pairs = (next_sentence.argmax(axis=-1) == inputs.next_sentence_labels).astype("float32").sum()
        tokens, samples = float(inputs.labels.shape[0]), float(inputs.layout.batch)
        counts = [right, paddle.full([], tokens), right_pairs, paddle.full([], samples)]
        return paddle.concat([paddle.stack(counts), pretraining_loss_sums(masked, next_sentence, inputs)])
