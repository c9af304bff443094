"""BERT's checkpoints as others write them: TensorFlow, PyTorch, Hugging Face's transformers.

- a folder of transformers: `config.json` with `model.safetensors` or `pytorch_model.bin`;
- a file of `torch.save`: a state dict, or one under the key `model`, with `bert_config.json` beside it or without;
- a TensorFlow checkpoint: `NAME` for `NAME.index` and `NAME.data-00000-of-00001`.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError

from benchmarks.common.conversion import Original
from benchmarks.common.torch_checkpoint import (
    imported,
    original_names,
    original_of,
    read_torch_checkpoint,
    unreadable,
    unwrapped,
)
from utils.errors import FlagPerfError

_TENSORFLOW_PACKAGES = "-r benchmarks/bert/prepare/requirements-tensorflow.txt"
# Last part of a TensorFlow name -> of theirs. A kernel is (inputs, outputs), their weight (outputs, inputs).
_KERNEL = "kernel"
_TENSORFLOW_ENDS = {
    _KERNEL: "weight",
    "gamma": "weight",
    "beta": "bias",
    "output_weights": "weight",
    "output_bias": "bias",
    "word_embeddings": "word_embeddings.weight",
    "position_embeddings": "position_embeddings.weight",
    "token_type_embeddings": "token_type_embeddings.weight",
}
# What a training run leaves in a TensorFlow checkpoint beside the weights: an optimizer's moments, counters.
_TRAINING_STATE = re.compile(
    r"adam_[mv]|lamb_[mv]|AdamWeightDecayOptimizer(_\d+)?|global_step|loss_scale|\w+_steps"
)


def read_original(path: Path) -> Original:
    """The weights by transformers' names, with the configuration that stands beside them.

    Raises:
        FlagPerfError: there is no such checkpoint, it cannot be read, or what reads it is not installed.
    """
    if path.is_dir():
        return replace(_folder(path), config=_config(path / "config.json"))
    prefix = path.with_suffix("") if path.suffix in (".index", ".meta") else path
    if prefix.with_name(prefix.name + ".index").is_file():
        original = _tensorflow(prefix)
    elif path.is_file():
        original = _safetensors(path) if path.suffix == ".safetensors" else _pytorch(path)
    else:
        raise unreadable(path, "there is none of this name")
    beside = path.with_name("bert_config.json")
    return replace(original, config=_config(beside)) if beside.is_file() else original


def from_tensorflow(name: str) -> str | None:
    """Transformers' name of the tensor `name` of google-research/bert; None: it is no weight of the model."""
    *parts, last = name.split("/")
    if _TRAINING_STATE.fullmatch(last):
        return None
    parts = [re.sub(r"layer_(\d+)", r"layer.\1", part) for part in parts]
    return ".".join([*parts, _TENSORFLOW_ENDS.get(last, last)])


def from_pytorch(name: str) -> str:
    """Transformers' present name of a tensor in a PyTorch file.

    NVIDIA's scripts name a linear map with its activation `dense_act`; the first converted checkpoints,
    bert-large-uncased among them, have TensorFlow's names of normalisation weights.
    """
    name = unwrapped(name).replace(".dense_act.", ".dense.")
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")


def _folder(folder: Path) -> Original:
    readers = {"model.safetensors": _safetensors, "pytorch_model.bin": _pytorch}
    for name, read in readers.items():
        if (folder / name).is_file():
            return read(folder / name)
    raise unreadable(folder, f"this folder has none of {', '.join(readers)}")


def _config(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FlagPerfError(
            f"cannot read it: {error}", where=str(path), remedy="download the model again"
        ) from None
    return content


def _pytorch(path: Path) -> Original:
    return read_torch_checkpoint(path, from_pytorch)


def _safetensors(path: Path) -> Original:
    imported("torch", "torch safetensors")
    load_file = imported("safetensors.torch", "torch safetensors").load_file
    try:
        return original_of((path,), load_file(path), from_pytorch)
    except (OSError, SafetensorError) as error:
        raise unreadable(path, str(error)) from error


def _tensorflow(prefix: Path) -> Original:
    """Read by TensorFlow, which verifies its checksums."""
    tensorflow = imported("tensorflow", _TENSORFLOW_PACKAGES)
    try:
        checkpoint = tensorflow.train.load_checkpoint(str(prefix))
        names = original_names(prefix, checkpoint.get_variable_to_shape_map(), from_tensorflow)
        tensors = {
            renamed: _as_in_pytorch(name, checkpoint.get_tensor(name)) for renamed, name in names.items()
        }
    except (OSError, ValueError, RuntimeError, tensorflow.errors.OpError) as error:
        raise unreadable(prefix, str(error)) from error
    return Original(_tensorflow_files(prefix), tensors, names)


def _tensorflow_files(prefix: Path) -> tuple[Path, ...]:
    data = sorted(prefix.parent.glob(f"{prefix.name}.data-*-of-*"))
    return (prefix.with_name(prefix.name + ".index"), *data)


def _as_in_pytorch(name: str, tensor: Any) -> Any:
    array = np.asarray(tensor, dtype=np.float32)
    return np.ascontiguousarray(array.T) if name.endswith(f"/{_KERNEL}") else array
