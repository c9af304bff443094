"""Take over the weights of GLM's released checkpoints (`blocklm-large-blank`): the modules bear their names."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.driver.initial_weights import check_form
from utils.errors import FlagPerfError

from .model import GlmForMultiTokenCloze

# Under "module" GLM's training saves the weights; a wrapped model's own state dict may stand one deeper.
_WRAPPERS = ("module", "model")


def load_checkpoint(model: GlmForMultiTokenCloze, path: Path) -> None:
    """Copy the weights of `mp_rank_00_model_states.pt`, or of any file of its form, in any precision, into `model`.

    Raises:
        FlagPerfError: the file cannot be read.
        ProblemsError: tensors are missing, not expected or of another shape: all of them; nothing is copied.
    """
    weights = _weights_in(_read(path))
    parameters = dict(model.named_parameters())
    check_form(
        {name: tuple(tensor.shape) for name, tensor in weights.items()},
        {name: tuple(parameter.shape) for name, parameter in parameters.items()},
        where=str(path),
    )
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(weights[name])


def _read(path: Path) -> object:
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        reason = f"it holds more than tensors and plain values, and such content could run code ({error})"
    except (OSError, RuntimeError, ValueError) as error:
        reason = str(error)
    raise FlagPerfError(
        f"cannot read the checkpoint: {reason}",
        where=str(path),
        remedy="put it into the data directory, or set init_checkpoint to its path there",
    )


def _weights_in(content: object) -> dict[str, Tensor]:
    """The tensors by name, whatever they are wrapped in; prefixes that wrapping modules leave are taken off."""
    for wrapper in _WRAPPERS:
        if isinstance(content, Mapping) and isinstance(content.get(wrapper), Mapping):
            content = content[wrapper]
    named = content if isinstance(content, Mapping) else {}
    return {_unwrapped(str(name)): tensor for name, tensor in named.items() if isinstance(tensor, Tensor)}


def _unwrapped(name: str) -> str:
    while name.startswith(("module.", "model.")):
        name = name.split(".", 1)[1]
    return name
