"""Take over weights from a Hugging Face BertForPreTraining."""

from __future__ import annotations

from collections.abc import Mapping

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


def load_transformers_weights(model: BertForPreTraining, weights: Mapping[str, Tensor]) -> None:
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
                    where="checkpoint",
                    remedy="load the checkpoint of a BertForPreTraining whose shape is the configuration's",
                )
            parameter.copy_(weights[theirs])


def _renamed(name: str, names: Mapping[str, str]) -> str:
    for ours, theirs in names.items():
        if name.startswith(ours):
            return theirs + name[len(ours) :]
    raise KeyError(name)
