"""Take over weights that bear the names of transformers' BertForPreTraining, as most checkpoints do."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.bert.names import transformers_name
from utils.errors import FlagPerfError

from .model import BertForPreTraining


def load_checkpoint(model: BertForPreTraining, path: Path) -> None:
    """Copy the weights of a PyTorch file: a state dict, or one under the key `model` as NVIDIA's scripts save it.

    Raises:
        FlagPerfError: the file cannot be read, or is not a checkpoint of a model of this shape.
    """
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, ValueError, pickle.UnpicklingError) as error:
        raise FlagPerfError(
            f"cannot read the checkpoint: {error}",
            where=str(path),
            remedy="put it into the data directory, or set init_checkpoint to its name there",
        ) from error
    weights = content.get("model", content) if isinstance(content, dict) else {}
    # NVIDIA's scripts name a linear map with its activation `dense_act`.
    named = {name.replace(".dense_act.", ".dense."): tensor for name, tensor in weights.items()}
    load_transformers_weights(model, named, where=str(path))


def load_transformers_weights(
    model: BertForPreTraining, weights: Mapping[str, Tensor], where: str = "checkpoint"
) -> None:
    """Copy the state dict of a transformers BertForPreTraining of the same shape into `model`.

    Their output matrix (`cls.predictions.decoder`) is the word embedding, as here, and is not read.

    Raises:
        FlagPerfError: a tensor is missing or has another shape.
    """
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            theirs = transformers_name(name)
            if theirs not in weights or weights[theirs].shape != parameter.shape:
                found = tuple(weights[theirs].shape) if theirs in weights else "none"
                raise FlagPerfError(
                    f"{theirs}: {tuple(parameter.shape)} is wanted, found {found}",
                    where=where,
                    remedy="load the checkpoint of a BertForPreTraining whose shape is the configuration's",
                )
            parameter.copy_(weights[theirs])
