"""Optimizers and their parameter groups."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from benchmarks.driver.pytorch.lamb import Lamb
from utils.parameters import TrainingSettings


def parameter_groups(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Two groups: matrices with weight decay, vectors (biases, normalisation weights) without."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    matrices = [parameter for parameter in trained if parameter.dim() > 1]
    vectors = [parameter for parameter in trained if parameter.dim() <= 1]
    return [
        {"params": matrices, "weight_decay": weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]


def make_optimizer(settings: TrainingSettings, model: nn.Module) -> Optimizer:
    """AdamW (Loshchilov and Hutter 2019, arXiv:1711.05101) or LAMB, as `settings.optimizer` says."""
    groups = parameter_groups(model, settings.weight_decay_rate)
    betas = (settings.beta_1, settings.beta_2)
    if settings.optimizer == "lamb":
        return Lamb(groups, lr=settings.learning_rate, betas=betas, eps=settings.epsilon)
    # fused: one kernel for all tensors, on the CPU too.
    return torch.optim.AdamW(
        groups, lr=settings.learning_rate, betas=betas, eps=settings.epsilon, fused=_can_fuse(model)
    )


def _can_fuse(model: nn.Module) -> bool:
    return next(model.parameters()).device.type in ("cpu", "cuda")
