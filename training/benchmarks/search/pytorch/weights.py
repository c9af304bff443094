"""The weights that a child begins with: its parent's, changed so that it computes the same where an edit allows that.

In evaluation, that is with fixed statistics of batch normalisations, a deepened or widened network gives its parent's
outputs, and so does one with a skip by a convolution; in training the normalisations that an edit puts in take the
batch's statistics. A skip of equal shapes changes the outputs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise

import torch
from torch import Tensor
from torch.nn import functional

from benchmarks.search.architecture import Architecture
from benchmarks.search.hyperparameters import as_proposed
from benchmarks.search.layers import BatchNorm, Conv, Dense
from benchmarks.search.morphism import Deepen, Edit, EditError, Widen, apply, width_group

BATCH_NORM_EPSILON = 1e-5  # PyTorch's

BY_CHANNEL = (
    "weight",
    "bias",
    "running_mean",
    "running_var",
)  # tensors of a layer whose first dimension is its channels

State = dict[str, Tensor]


def inherited(
    state: Mapping[str, Tensor], parent: Architecture, edits: Sequence[Edit], child: Architecture
) -> State:
    """The state of a network of `child`, which `edits` make of `parent`, from that of a network of `parent`.

    Both are as they are trained: kernels of inserted convolutions may differ. A larger kernel has zeros around the
    smaller one and computes the same; a smaller one has the middle of the larger.

    Raises:
        EditError: an edit does not fit, or what they make is not `child`.
    """
    architectures = list(accumulate(edits, apply, initial=parent))
    if as_proposed(architectures[-1]) != as_proposed(child):  # equal shapes may be of other layers
        raise EditError("the edits do not make the child of the parent")
    weights = dict(state)
    for edit, (before, after) in zip(edits, pairwise(architectures), strict=True):
        if isinstance(edit, Widen):
            _widen(weights, before, edit.layer)
        else:
            _insert(weights, before, after, is_identity=isinstance(edit, Deepen))
    return _with_kernels(weights, child)


def _insert(weights: State, before: Architecture, after: Architecture, *, is_identity: bool) -> None:
    """A convolution and a normalisation that pass on what they take, or (of a skip) that give zeros."""
    like = next(tensor for tensor in weights.values() if tensor.is_floating_point())
    for layer in after.layers:
        if layer.id in before.by_id:
            continue
        channels = after.shapes[layer.id].channels
        if isinstance(layer, Conv):
            shape = (channels, after.inputs_of(layer)[0].channels, layer.kernel, layer.kernel)
            kernel = torch.empty(shape, dtype=like.dtype, device=like.device)
            initial = torch.nn.init.dirac_ if is_identity else _drawn
            weights[f"layers.{layer.id}.weight"] = initial(kernel)
        elif isinstance(layer, BatchNorm):
            scale = math.sqrt(1 + BATCH_NORM_EPSILON) if is_identity else 0.0
            weights.update(_batch_norm(f"layers.{layer.id}", like, channels, scale))


def _drawn(kernel: Tensor) -> Tensor:
    return torch.nn.init.kaiming_normal_(kernel, mode="fan_out", nonlinearity="relu")


def _batch_norm(name: str, like: Tensor, channels: int, scale: float) -> State:
    """One that multiplies by `scale` and the square root of 1 + epsilon less: its statistics are mean 0, variance 1."""
    ones = torch.ones(channels, dtype=like.dtype, device=like.device)
    return {
        f"{name}.weight": scale * ones,
        f"{name}.bias": 0 * ones,
        f"{name}.running_mean": 0 * ones,
        f"{name}.running_var": ones,
        f"{name}.num_batches_tracked": torch.zeros((), dtype=torch.long, device=like.device),
    }


def _widen(weights: State, architecture: Architecture, wide: int) -> None:
    """Every channel of the group twice. Who takes them has zeros for the copies, and learns to tell the two apart."""
    group = width_group(architecture, wide)
    for layer in architecture.layers:
        name = f"layers.{layer.id}"
        if isinstance(layer, (Conv, Dense)) and layer.inputs[0] in group:
            taken = weights[f"{name}.weight"]
            weights[f"{name}.weight"] = torch.cat([taken, torch.zeros_like(taken)], dim=1)
        if layer.id in group and isinstance(layer, (Conv, Dense, BatchNorm)):
            for key in (f"{name}.{part}" for part in BY_CHANNEL):
                if key in weights:
                    weights[key] = torch.cat([weights[key], weights[key]])


def _with_kernels(weights: State, child: Architecture) -> State:
    for layer in child.layers:
        if isinstance(layer, Conv):
            kernel = weights[f"layers.{layer.id}.weight"]
            margin = (layer.kernel - kernel.shape[-1]) // 2  # below zero: it is cut off
            weights[f"layers.{layer.id}.weight"] = functional.pad(kernel, [margin] * 4)
    return weights
