"""The BERT case on PyTorch: model, inputs, loss, evaluation. The task itself is `benchmarks.bert.task`."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from benchmarks.bert.arrays import PretrainingArrays
from benchmarks.bert.task import PretrainingTask

from .inputs import make_inputs
from .model import BertForPreTraining, Inputs, pretraining_loss_sums
from .weights import load_checkpoint


class Case(PretrainingTask):
    """Masked language model and next sentence prediction."""

    def build_model(self) -> nn.Module:
        """BERT with the initial checkpoint's weights, or random ones where none is configured."""
        checkpoint = self.initial_checkpoint()
        if checkpoint is None:
            return BertForPreTraining(self.model_config)
        # Random weights that the checkpoint's replace would take longer to draw than these to read.
        with torch.device("meta"):
            model = BertForPreTraining(self.model_config)
        model.to_empty(device="cpu")
        load_checkpoint(model, checkpoint)
        return model

    def inputs(self, arrays: PretrainingArrays) -> Inputs:
        """Tensors in the layout that the device is fastest with."""
        return make_inputs(arrays, ragged=self.task.ragged_attention)

    def loss(self, model: nn.Module, inputs: Inputs) -> Tensor:
        """(2,): cross entropy summed over masked tokens, and over samples."""
        masked, next_sentence = model(inputs)
        return pretraining_loss_sums(masked, next_sentence, inputs)

    def evaluate(self, model: nn.Module, inputs: Inputs) -> Tensor:
        """(6,): right tokens, tokens, right next sentences, samples, and the two losses' sums."""
        masked, next_sentence = model(inputs)
        right = (masked.argmax(dim=-1) == inputs.labels).sum()
        right_pairs = (next_sentence.argmax(dim=-1) == inputs.next_sentence_labels).sum()
        counts = torch.tensor([inputs.labels.numel(), inputs.layout.batch], device=masked.device)
        losses = pretraining_loss_sums(masked, next_sentence, inputs)
        return torch.cat([torch.stack([right, counts[0], right_pairs, counts[1]]).float(), losses])
