"""Take over the weights of GLM's released checkpoints (`blocklm-large-blank`): the modules bear their names."""

from __future__ import annotations

from pathlib import Path

import torch

from benchmarks.common.initial_weights import check_form, read_weights

from .model import GlmForMultiTokenCloze


def load_checkpoint(model: GlmForMultiTokenCloze, path: Path) -> None:
    """Copy the weights of the converted initial checkpoint `path` into `model`.

    Raises:
        FlagPerfError: there is none, it is not converted, or it cannot be read.
        ProblemsError: tensors are missing, not expected or of another shape: all of them; nothing is copied.
    """
    weights = read_weights(path, model="glm", framework="pt").tensors
    parameters = dict(model.named_parameters())
    check_form(
        {name: tuple(tensor.shape) for name, tensor in weights.items()},
        {name: tuple(parameter.shape) for name, parameter in parameters.items()},
        where=str(path),
    )
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(weights[name])
