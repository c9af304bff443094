"""The initial checkpoint, whatever wrote it: TensorFlow, PyTorch or Hugging Face's transformers.

`init_checkpoint` of the configuration names, in the data directory,

- a folder of transformers: `config.json` with `model.safetensors` or `pytorch_model.bin`;
- a file of `torch.save`, with or without its ending `.pt`: a state dict, or one under the key `model`;
- a TensorFlow checkpoint: `NAME` for `NAME.index` and `NAME.data-00000-of-00001`.

No framework is needed to read any of them. Where `NAME.pt` and `NAME.index` both exist the former is read: it was made
of the latter, and is read faster.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.bert.names import KERNEL, from_pytorch, from_tensorflow
from benchmarks.bert.safetensors_file import read_safetensors
from benchmarks.bert.shape import BertConfig
from benchmarks.bert.tf_checkpoint import TensorflowCheckpoint
from benchmarks.bert.torch_file import read_torch_file
from benchmarks.driver.initial_weights import Shape, check_form
from utils.errors import FlagPerfError, Problem, ProblemsError, nearest

Weights = Mapping[str, NDArray[Any]]

# The vocabulary is padded to a multiple of this, in NVIDIA's `.pt` files and in models.
_VOCABULARY_STEP = 8
# Bias of a token that is only padding: so low that it is never predicted and takes no part in the loss.
_NEVER = -10_000.0
_WORDS, _BIAS = "bert.embeddings.word_embeddings.weight", "cls.predictions.bias"
# Other names of these two (the output matrix is the word embedding), and a constant.
_TIED = {"cls.predictions.decoder.weight": _WORDS, "cls.predictions.decoder.bias": _BIAS}
_CONSTANT = "bert.embeddings.position_ids"
_TENSORFLOW_PARTS = (".index", ".meta")
_OTHER_SHAPE = "give the checkpoint of a model of the configured shape"

# What of `config.json` must be as configured: what no tensor's shape shows stands first.
_SAME_IN_CONFIG = (
    "num_attention_heads",
    "layer_norm_eps",
    "hidden_size",
    "num_hidden_layers",
    "intermediate_size",
    "max_position_embeddings",
    "type_vocab_size",
)


def read_checkpoint(path: Path, config: BertConfig) -> Weights:
    """The weights of the checkpoint `path` by transformers' names.

    Raises:
        FlagPerfError: there is none of this name, or it cannot be read.
        ProblemsError: its `config.json` describes another model.
    """
    found, read = _reader(path)
    if config.pre_layer_norm:
        raise FlagPerfError(
            "pre_layer_norm = True: BERT's checkpoints are of the form that normalises after each part",
            where=str(found),
            remedy='set pre_layer_norm = False, or init_checkpoint = "" for random weights',
        )
    shape_file = path / "config.json" if path.is_dir() else path.with_name("bert_config.json")
    if path.is_dir() or shape_file.is_file():
        _check_config(shape_file, config)
    try:
        return read(found)
    except (OSError, ValueError) as error:
        raise FlagPerfError(
            f"cannot read the checkpoint: {error}", where=str(found), remedy="copy or download it again"
        ) from error


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


def _reader(path: Path) -> tuple[Path, Callable[[Path], Weights]]:
    """The file that `path` means, and what reads it."""
    if path.is_dir():
        return _file_of_folder(path)
    if path.suffix in _TENSORFLOW_PARTS:
        path = path.with_suffix("")
    elif path.is_file():
        return path, _safetensors if path.suffix == ".safetensors" else _pytorch
    elif (made := path.with_name(path.name + ".pt")).is_file():
        return made, _pytorch
    if path.with_name(path.name + ".index").is_file():
        return path, _tensorflow
    there = sorted(entry.name for entry in path.parent.iterdir()) if path.parent.is_dir() else []
    raise FlagPerfError(
        "cannot read the checkpoint: there is none of this name",
        where=str(path),
        remedy=nearest(path.name, there)
        or "put it there, or set init_checkpoint to its name in the data directory",
    )


def _file_of_folder(folder: Path) -> tuple[Path, Callable[[Path], Weights]]:
    readers = {"model.safetensors": _safetensors, "pytorch_model.bin": _pytorch}
    for name, read in readers.items():
        if (folder / name).is_file():
            return folder / name, read
    raise FlagPerfError(
        f"this folder has none of {', '.join(readers)}",
        where=str(folder),
        remedy="download the whole model, or save it in one file",
    )


def _check_config(path: Path, config: BertConfig) -> None:
    try:
        theirs: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FlagPerfError(
            f"cannot read it: {error}", where=str(path), remedy="download the folder again"
        ) from error
    wanted = {name: getattr(config, name) for name in _SAME_IN_CONFIG} | {"hidden_act": "gelu"}
    problems = [
        Problem(
            str(path),
            name,
            repr(theirs[name]),
            f"{value!r} is configured",
            "give another checkpoint, or configure it",
        )
        for name, value in wanted.items()
        if theirs.get(name, value) != value
    ]
    if problems:
        raise ProblemsError(problems)


def _tensorflow(prefix: Path) -> Weights:
    checkpoint = TensorflowCheckpoint(prefix)
    weights = {}
    for name in checkpoint.entries:
        theirs = from_tensorflow(name)
        if theirs is not None:
            tensor = checkpoint.read(name)
            weights[theirs] = tensor.T if name.endswith(f"/{KERNEL}") else tensor
    return weights


def _pytorch(path: Path) -> Weights:
    content = read_torch_file(path)
    if isinstance(content, dict) and isinstance(content.get("model"), dict):
        content = content["model"]
    if not isinstance(content, dict):
        raise ValueError("it holds no state dict")
    return {from_pytorch(name): array for name, array in content.items() if isinstance(array, np.ndarray)}


def _safetensors(path: Path) -> Weights:
    return {from_pytorch(name): array for name, array in read_safetensors(path).items()}


def _with_rows(array: NDArray[Any], wanted: int, padding: float) -> NDArray[Any]:
    """`array` with `wanted` rows, if only the vocabulary's padding is to be added or cut off."""
    missing = wanted - len(array)
    if not missing or abs(missing) >= _VOCABULARY_STEP:
        return array
    if missing < 0:
        return array[:wanted] if len(array) % _VOCABULARY_STEP == 0 else array
    return np.concatenate([array, np.full((missing, *array.shape[1:]), padding, dtype=array.dtype)])
