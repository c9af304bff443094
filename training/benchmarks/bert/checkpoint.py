"""The initial checkpoint of BERT: a file that `benchmarks.bert.prepare` converted, by transformers' names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.bert.shape import BertConfig
from benchmarks.common.initial_weights import CONFIG, Shape, check_form, read_weights
from utils.errors import FlagPerfError, Problem, ProblemsError

Weights = Mapping[str, NDArray[Any]]

# The vocabulary is padded to a multiple of this, in NVIDIA's files and in models.
_VOCABULARY_STEP = 8
# Bias of a token that is only padding: so low that it is never predicted and takes no part in the loss.
_NEVER = -10_000.0
_WORDS, _BIAS = "bert.embeddings.word_embeddings.weight", "cls.predictions.bias"
# Other names of these two (the output matrix is the word embedding), and a constant.
_TIED = {"cls.predictions.decoder.weight": _WORDS, "cls.predictions.decoder.bias": _BIAS}
_CONSTANT = "bert.embeddings.position_ids"

# What of the checkpoint's configuration must be as configured: what no tensor's shape shows stands first.
_SAME_IN_CONFIG = (
    "num_attention_heads",
    "layer_norm_eps",
    "hidden_size",
    "num_hidden_layers",
    "intermediate_size",
    "max_position_embeddings",
    "type_vocab_size",
)
# "gelu" is tanh's form in BERT's own files, and the exact one in transformers, which names the former so.
_ALSO_CALLED = {("hidden_act", "tanh"): ("gelu_new", "gelu_pytorch_tanh")}


def read_checkpoint(path: Path, config: BertConfig) -> Weights:
    """The weights of the converted checkpoint `path` by transformers' names.

    Raises:
        FlagPerfError: there is none of this name, it is not converted, or it cannot be read.
        ProblemsError: it is of a model that is configured otherwise.
    """
    if config.pre_layer_norm:
        raise FlagPerfError(
            "pre_layer_norm = True: BERT's checkpoints are of the form that normalises after each part",
            where=str(path),
            remedy='set pre_layer_norm = False, or init_checkpoint = "" for random weights',
        )
    weights = read_weights(path, model="bert", framework="np")
    _check_config(json.loads(weights.metadata.get(CONFIG, "{}")), config, where=str(path))
    return weights.tensors


def fitted(weights: Weights, wanted: Mapping[str, Shape], *, where: str) -> dict[str, NDArray[Any]]:
    """`weights` as the model wants them: just its tensors, the vocabulary padded as the model's.

    Args:
        weights: by transformers' names, a linear map's as (outputs, inputs).
        wanted: shape of each of the model's tensors, by the same names.
        where: the checkpoint's file.

    Raises:
        ProblemsError: tensors are missing, not expected or of another shape: all of them.
    """
    weights = {name: np.asarray(array) for name, array in weights.items() if name != _CONSTANT}
    untied = [
        Problem(
            where, name, "", f"is not {tied}, which it is in BERT", "give a BertForPreTraining's checkpoint"
        )
        for name, tied in _TIED.items()
        if name in weights and not np.array_equal(weights[name], weights.get(tied, weights[name]))
    ]
    if untied:
        raise ProblemsError(untied)
    kept = {name: array for name, array in weights.items() if name not in _TIED}
    for name, padding in ((_WORDS, 0.0), (_BIAS, _NEVER)):
        if name in kept and name in wanted:
            kept[name] = _with_rows(kept[name], wanted[name][0], padding)
    check_form({name: array.shape for name, array in kept.items()}, wanted, where=where)
    return kept


def _check_config(theirs: Mapping[str, Any], config: BertConfig, *, where: str) -> None:
    wanted = {name: getattr(config, name) for name in _SAME_IN_CONFIG} | {"hidden_act": "gelu"}
    problems = [
        Problem(
            where,
            name,
            repr(theirs[name]),
            f"{value!r} is configured",
            "give another checkpoint, or configure it",
        )
        for name, value in wanted.items()
        if theirs.get(name, value) not in (value, *_ALSO_CALLED.get((name, config.gelu), ()))
    ]
    if problems:
        raise ProblemsError(problems)


def _with_rows(array: NDArray[Any], wanted: int, padding: float) -> NDArray[Any]:
    """`array` with `wanted` rows, if only the vocabulary's padding is to be added or cut off."""
    missing = wanted - len(array)
    if not missing or abs(missing) >= _VOCABULARY_STEP:
        return array
    if missing < 0:
        return array[:wanted] if len(array) % _VOCABULARY_STEP == 0 else array
    return np.concatenate([array, np.full((missing, *array.shape[1:]), padding, dtype=array.dtype)])
