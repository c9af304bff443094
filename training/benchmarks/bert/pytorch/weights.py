"""Take over weights that bear the names of transformers' BertForPreTraining, as most checkpoints do."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from utils.errors import FlagPerfError

from .model import BertForPreTraining

# Beginning of our name -> beginning of theirs; the first that fits is taken.
_NAMES = {
    "embeddings.word.": "bert.embeddings.word_embeddings.",
    "embeddings.position.": "bert.embeddings.position_embeddings.",
    "embeddings.segment.": "bert.embeddings.token_type_embeddings.",
    "embeddings.norm.": "bert.embeddings.LayerNorm.",
    "pooler.": "bert.pooler.dense.",
    "next_sentence.": "cls.seq_relationship.",
    "masked_token.transform.": "cls.predictions.transform.dense.",
    "masked_token.norm.": "cls.predictions.transform.LayerNorm.",
    "masked_token.bias": "cls.predictions.bias",
}
_LAYER_NAMES = {
    "attention.query.": "attention.self.query.",
    "attention.key.": "attention.self.key.",
    "attention.value.": "attention.self.value.",
    "attention.output.": "attention.output.dense.",
    "attention_norm.": "attention.output.LayerNorm.",
    "feed_forward.wide.": "intermediate.dense.",
    "feed_forward.narrow.": "output.dense.",
    "feed_forward_norm.": "output.LayerNorm.",
}


def transformers_name(name: str) -> str:
    """What the parameter `name` of this model is called in transformers.

    Raises:
        KeyError: transformers' BERT has none such (the final norm of a pre-LN model).
    """
    if name.startswith("layers."):
        _, number, rest = name.split(".", 2)
        return f"bert.encoder.layer.{number}." + _renamed(rest, _LAYER_NAMES)
    return _renamed(name, _NAMES)


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


def _renamed(name: str, names: Mapping[str, str]) -> str:
    for ours, theirs in names.items():
        if name.startswith(ours):
            return theirs + name[len(ours) :]
    raise KeyError(name)
