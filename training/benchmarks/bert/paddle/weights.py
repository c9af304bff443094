"""Take over weights that bear the names of transformers' BertForPreTraining, as most checkpoints do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import paddle
from numpy.typing import NDArray
from paddle import nn

from benchmarks.bert.names import transformers_name
from benchmarks.bert.torch_file import read_torch_file
from utils.errors import FlagPerfError

from .model import BertForPreTraining

# The vocabulary is padded to a multiple of this.
_VOCABULARY_STEP = 8
# Bias of a token that is only padding: so low that it is never predicted and takes no part in the loss.
_NEVER = -10_000.0

Weights = Mapping[str, NDArray[Any]]


def load_checkpoint(model: BertForPreTraining, path: Path) -> None:
    """Copy the weights of a PyTorch file: a state dict, or one under the key `model` as NVIDIA's scripts save it.

    Raises:
        FlagPerfError: the file cannot be read, or is not a checkpoint of a model of this shape.
    """
    try:
        content = read_torch_file(path)
    except (OSError, ValueError) as error:
        raise FlagPerfError(
            f"cannot read the checkpoint: {error}",
            where=str(path),
            remedy="put it into the data directory, or set init_checkpoint to its name there",
        ) from error
    weights = content.get("model", content) if isinstance(content, dict) else {}
    # NVIDIA's scripts name a linear map with its activation `dense_act`.
    named = {name.replace(".dense_act.", ".dense."): tensor for name, tensor in weights.items()}
    load_transformers_weights(model, named, where=str(path))


def load_transformers_weights(model: BertForPreTraining, weights: Weights, where: str = "checkpoint") -> None:
    """Copy the weights of a transformers BertForPreTraining of the same shape into `model`.

    Their output matrix (`cls.predictions.decoder`) is the word embedding, as here, and is not read. Where
    this model's vocabulary is padded and theirs is not, the tokens beyond theirs can never be predicted.

    Raises:
        FlagPerfError: a tensor is missing or has another shape.
    """
    transposed = {id(layer.weight) for layer in model.sublayers() if isinstance(layer, nn.Linear)}
    for name, parameter in model.named_parameters():
        theirs = transformers_name(name)
        found = weights.get(theirs)
        if found is not None and id(parameter) in transposed:
            found = found.T  # Paddle's linear maps hold (inputs, outputs)
        if found is not None and name in ("embeddings.word.weight", "masked_token.bias"):
            found = _padded(found, parameter.shape[0], 0.0 if found.ndim > 1 else _NEVER)
        if found is None or list(found.shape) != list(parameter.shape):
            shape = "none" if found is None else tuple(found.shape)
            raise FlagPerfError(
                f"{theirs}: {tuple(parameter.shape)} is wanted, found {shape}",
                where=where,
                remedy="load the checkpoint of a BertForPreTraining whose shape is the configuration's",
            )
        parameter.set_value(paddle.to_tensor(np.ascontiguousarray(found, dtype=np.float32)))


def _padded(rows: NDArray[Any], wanted: int, value: float) -> NDArray[Any]:
    """`rows` filled up to `wanted` of them, if these are only the vocabulary's padding."""
    missing = wanted - len(rows)
    if not 0 < missing < _VOCABULARY_STEP:
        return rows
    return np.concatenate([rows, np.full((missing, *rows.shape[1:]), value, dtype=rows.dtype)])
