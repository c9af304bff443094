"""Put a checkpoint's weights into the model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import paddle
from paddle import Tensor, nn

from benchmarks.bert.checkpoint import Weights, fitted, read_checkpoint
from benchmarks.bert.names import transformers_name

from .model import BertForPreTraining


def load_checkpoint(model: BertForPreTraining, path: Path) -> None:
    """Copy the weights of the converted initial checkpoint `path`.

    Raises:
        FlagPerfError: there is none, it is not converted, cannot be read, or is not of a model of this shape.
    """
    load_transformers_weights(model, read_checkpoint(path, model.config), where=str(path))


def load_transformers_weights(model: BertForPreTraining, weights: Weights, where: str = "checkpoint") -> None:
    """Copy the weights of a transformers BertForPreTraining of the same shape into `model`.

    Raises:
        ProblemsError: tensors are missing, not expected or of another shape: all of them.
    """
    maps = {id(layer.weight) for layer in model.sublayers() if isinstance(layer, nn.Linear)}
    parameters = {transformers_name(name): parameter for name, parameter in model.named_parameters()}

    def is_turned(parameter: Tensor) -> bool:
        """Paddle's linear maps hold (inputs, outputs)."""
        return id(parameter) in maps

    wanted = {
        name: tuple(reversed(parameter.shape) if is_turned(parameter) else parameter.shape)
        for name, parameter in parameters.items()
    }
    for name, array in fitted(weights, wanted, where=where).items():
        parameter = parameters[name]
        turned = array.T if is_turned(parameter) else array
        parameter.set_value(paddle.to_tensor(np.ascontiguousarray(turned, dtype=np.float32)))
