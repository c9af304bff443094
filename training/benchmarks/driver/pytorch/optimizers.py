"""Optimizers and their parameter groups."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from benchmarks.driver.pytorch.lamb import Lamb
from utils.errors import raised
from utils.parameters import TrainingSettings

_NEAR = 1e-3


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
    """AdamW (Loshchilov and Hutter 2019, arXiv:1711.05101), LAMB or SGD with momentum, as `settings.optimizer` says."""
    groups = parameter_groups(model, settings.weight_decay_rate)
    betas = (settings.beta_1, settings.beta_2)
    if settings.optimizer == "lamb":
        return Lamb(groups, lr=settings.learning_rate, betas=betas, eps=settings.epsilon)
    if settings.optimizer == "sgd":
        return torch.optim.SGD(groups, lr=settings.learning_rate, momentum=settings.beta_1)
    # fused: one kernel for all tensors, on the CPU too.
    fused = can_fuse(next(model.parameters()).device)
    return torch.optim.AdamW(
        groups, lr=settings.learning_rate, betas=betas, eps=settings.epsilon, fused=fused
    )


def can_fuse(device: torch.device) -> bool:
    """Whether PyTorch's fused AdamW works on the device: a step of 1 is tried on one number; where not, says why.

    PyTorch's own list has every device that a plug-in or another vendor's build calls `cuda`, kernel or not.
    """
    number = torch.zeros(1, device=device)
    number.grad = torch.ones_like(number)
    try:
        torch.optim.AdamW([number], lr=1.0, weight_decay=0.0, fused=True).step()
        result = number.item()
        reason = "" if abs(result + 1) < _NEAR else f"a step from 0 to -1 led to {result:g}"
    except (RuntimeError, TypeError) as error:
        reason = raised(error).partition("\n")[0]
    if reason:
        print(f"AdamW is not fused on {device.type}: {reason}", flush=True)
    return not reason
