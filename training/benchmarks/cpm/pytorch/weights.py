"""Take over weights of CPM-1's own checkpoints, and of a transformers GPT2LMHeadModel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.common.initial_weights import check_form, read_weights

from .model import CpmModel

_CPM_NAMES = {
    "word.": "word_embeddings.",
    "position.": "position_embeddings.",
    "final_norm.": "transformer.final_layernorm.",
}
_CPM_LAYER_NAMES = {
    "attention_norm.": "input_layernorm.",
    "attention.query_key_value.": "attention.query_key_value.",
    "attention.output.": "attention.dense.",
    "feed_forward_norm.": "post_attention_layernorm.",
    "feed_forward.wide.": "mlp.dense_h_to_4h.",
    "feed_forward.narrow.": "mlp.dense_4h_to_h.",
}
_TRANSFORMERS_NAMES = {
    "word.": "transformer.wte.",
    "position.": "transformer.wpe.",
    "final_norm.": "transformer.ln_f.",
}
_TRANSFORMERS_LAYER_NAMES = {
    "attention_norm.": "ln_1.",
    "attention.query_key_value.": "attn.c_attn.",
    "attention.output.": "attn.c_proj.",
    "feed_forward_norm.": "ln_2.",
    "feed_forward.wide.": "mlp.c_fc.",
    "feed_forward.narrow.": "mlp.c_proj.",
}


def cpm_name(name: str) -> str:
    """What the parameter `name` of this model is called in CPM-1's checkpoints."""
    return _renamed(name, _CPM_NAMES, "transformer.layers.", _CPM_LAYER_NAMES)


def transformers_name(name: str) -> str:
    """What the parameter `name` of this model is called in a transformers GPT2LMHeadModel."""
    return _renamed(name, _TRANSFORMERS_NAMES, "transformer.h.", _TRANSFORMERS_LAYER_NAMES)


def load_checkpoint(model: CpmModel, path: Path) -> None:
    """Copy the weights of the converted initial checkpoint `path` into `model`.

    Raises:
        FlagPerfError: there is none, it is not converted, or it cannot be read.
        ProblemsError: tensors are missing, not expected or of another shape: all of them.
    """
    load_weights(model, read_weights(path, model="cpm", framework="pt").tensors, cpm_name, where=str(path))


def load_weights(
    model: CpmModel, weights: Mapping[str, Tensor], name_of: Callable[[str], str], *, where: str
) -> None:
    """Copy `weights`, which bear the names `name_of(our name)`, into `model`; nothing is copied if one is wrong."""
    parameters = {name_of(name): parameter for name, parameter in model.named_parameters()}
    present = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    check_form(present, {name: tuple(p.shape) for name, p in parameters.items()}, where=where)
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(weights[name])


def from_transformers(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A GPT2LMHeadModel's state dict with its matrices turned as here, and without the tied output matrix.

    Their maps are `Conv1D`, whose weight is (in, out).
    """
    matrices = ("c_attn.weight", "c_proj.weight", "c_fc.weight")
    return {
        name: tensor.T if name.endswith(matrices) else tensor
        for name, tensor in weights.items()
        if name != "lm_head.weight"
    }


def _renamed(name: str, names: Mapping[str, str], layers: str, layer_names: Mapping[str, str]) -> str:
    if name.startswith("layers."):
        _, number, rest = name.split(".", 2)
        return f"{layers}{number}." + _with_beginning(rest, layer_names)
    return _with_beginning(name, names)


def _with_beginning(name: str, names: Mapping[str, str]) -> str:
    for ours, theirs in names.items():
        if name.startswith(ours):
            return theirs + name[len(ours) :]
    raise KeyError(name)
