"""Put a checkpoint's weights into the model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

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
    parameters = {transformers_name(name): parameter for name, parameter in model.named_parameters()}
    wanted = {name: tuple(parameter.shape) for name, parameter in parameters.items()}
    with torch.no_grad():
        for name, array in fitted(weights, wanted, where=where).items():
            parameters[name].copy_(torch.from_numpy(np.array(array, dtype=np.float32)))
