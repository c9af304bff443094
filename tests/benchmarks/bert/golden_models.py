"""BERT of either framework with the formulas' weights, and what it says of their samples, as numpy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
import torch

from benchmarks.bert.arrays import pretraining_arrays
from benchmarks.bert.names import transformers_name
from benchmarks.bert.paddle import inputs as paddle_inputs
from benchmarks.bert.paddle import model as paddle_model
from benchmarks.bert.paddle.weights import load_transformers_weights as load_into_paddle
from benchmarks.bert.pytorch import inputs as torch_inputs
from benchmarks.bert.pytorch import model as torch_model
from benchmarks.bert.pytorch.weights import load_transformers_weights as load_into_torch
from benchmarks.bert.shape import BertConfig
from tests.benchmarks.bert import golden_data as data


class OnPytorch:
    """BERT on PyTorch."""

    def __init__(self, gelu: str) -> None:
        self.model = torch_model.BertForPreTraining(BertConfig(**data.MODEL, gelu=gelu))
        shapes = {transformers_name(n): tuple(p.shape) for n, p in self.model.named_parameters()}
        load_into_torch(self.model, {name: data.weight(name, shape) for name, shape in shapes.items()})

    def logits(self, rows: dict[str, Any]) -> tuple[Any, Any]:
        """(M, vocabulary) and (B, 2)."""
        with torch.no_grad():
            masked, next_sentence = self.model(
                torch_inputs.make_inputs(pretraining_arrays(rows), ragged=False)
            )
        return masked.numpy(), next_sentence.numpy()

    def loss(self, rows: dict[str, Any]) -> torch.Tensor:
        """The mean loss of the samples, to be differentiated."""
        arrays = pretraining_arrays(rows)
        inputs = torch_inputs.make_inputs(arrays, ragged=False)
        counts = torch.tensor([len(arrays.labels), len(arrays.lengths)])
        return (torch_model.pretraining_loss_sums(*self.model(inputs), inputs) / counts).sum()

    def gradient_norms(self, rows: dict[str, Any]) -> dict[str, float]:
        """Of each tensor, by transformers' name."""
        self.loss(rows).backward()  # type: ignore[no-untyped-call]
        return {
            transformers_name(name): float(parameter.grad.norm())
            for name, parameter in self.model.named_parameters()
            if parameter.grad is not None
        }


class OnPaddle:
    """BERT on Paddle."""

    def __init__(self, gelu: str) -> None:
        self.model = paddle_model.BertForPreTraining(BertConfig(**data.MODEL, gelu=gelu))
        # the other framework knows the names' shapes, with linear maps as (outputs, inputs)
        shapes = {transformers_name(n): tuple(p.shape) for n, p in OnPytorch(gelu).model.named_parameters()}
        load_into_paddle(self.model, {name: data.weight(name, shape) for name, shape in shapes.items()})

    def logits(self, rows: dict[str, Any]) -> tuple[Any, Any]:
        """(M, vocabulary) and (B, 2)."""
        masked, next_sentence = self.model(paddle_inputs.make_inputs(pretraining_arrays(rows)))
        return masked.numpy(), next_sentence.numpy()

    def loss(self, rows: dict[str, Any]) -> paddle.Tensor:
        """The mean loss of the samples, to be differentiated."""
        arrays = pretraining_arrays(rows)
        inputs = paddle_inputs.make_inputs(arrays)
        counts = paddle.to_tensor([float(len(arrays.labels)), float(len(arrays.lengths))])
        return (paddle_model.pretraining_loss_sums(*self.model(inputs), inputs) / counts).sum()

    def gradient_norms(self, rows: dict[str, Any]) -> dict[str, float]:
        """Of each tensor, by transformers' name."""
        self.loss(rows).backward()
        return {
            transformers_name(name): float(np.linalg.norm(parameter.grad.numpy()))
            for name, parameter in self.model.named_parameters()
            if parameter.grad is not None
        }


FRAMEWORKS = {"pytorch": OnPytorch, "paddle": OnPaddle}
