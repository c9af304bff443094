"""Weights by a formula and figures of gradients: the originals' code was run with the same ones."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

FIRST = 3  # values of a gradient that are written down, beside its norm and its share along the formula


def wave(shape: Sequence[int], phase: float) -> Tensor:
    """float32 of `shape`: sin(1.3 i^2 + phase) of the i-th value; no two rows are alike, no low rank."""
    places = torch.arange(torch.Size(shape).numel(), dtype=torch.float64)
    return torch.sin(1.3 * places * places + phase).reshape(tuple(shape)).float()


def set_by_formula(model: nn.Module) -> None:
    """Overwrite every parameter: matrices with waves of 0.4, biases of 0.1, weights of normalisation 1 + that.

    The phase is the sum of the characters of the parameter's name, so that no two are alike.
    """
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            values = wave(parameter.shape, sum(map(ord, name)))
            is_norm = name.endswith("norm.weight")
            parameter.copy_(0.4 * values if parameter.dim() > 1 else is_norm + 0.1 * values)


def gradient_figures(model: nn.Module) -> dict[str, list[float]]:
    """By name: each gradient's Euclidean norm, its product with a wave of its shape, and its first values.

    The product changes if any two values change places.
    """
    figures = {}
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        gradient = parameter.grad.double()
        along = (gradient * wave(gradient.shape, 0.5)).sum()
        figures[name] = [float(gradient.norm()), float(along), *gradient.flatten()[:FIRST].tolist()]
    return figures
