"""What a vendor may replace (see `driver/hooks.py`), as the driver does it in PyTorch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer

from benchmarks.driver.configuration import Configuration
from benchmarks.driver.pytorch.optimizers import make_optimizer

Scaler = Any  # torch.amp.GradScaler, or a vendor's object with the same methods


def convert_model(config: Configuration, model: nn.Module) -> nn.Module:
    """The model as the case built it."""
    return model


def create_optimizer(config: Configuration, model: nn.Module) -> Optimizer:
    """The optimizer that the configuration names."""
    return make_optimizer(config.driver, model)


def model_to_fp16(
    config: Configuration, model: nn.Module, optimizer: Optimizer
) -> tuple[nn.Module, Optimizer]:
    """Unchanged: mixed precision is done by autocast, the weights stay fp32."""
    return model, optimizer


def model_to_ddp(config: Configuration, model: nn.Module) -> nn.Module:
    """Gradients averaged over the ranks, overlapped with the backward pass.

    A static graph spares DDP the search for unused parameters' order each step; it does not go
    together with `no_sync`, which gradient accumulation needs.
    """
    return DistributedDataParallel(
        model,
        gradient_as_bucket_view=True,
        static_graph=config.driver.gradient_accumulation_steps == 1,
    )


def create_grad_scaler(config: Configuration, device_type: str) -> Scaler:
    """A scaler for fp16, whose gradients would underflow; None for the others."""
    return torch.amp.GradScaler(device_type) if config.driver.precision == "fp16" else None


def backward(config: Configuration, loss: Tensor, optimizer: Optimizer, scaler: Scaler) -> None:
    """Gradients of one micro-batch's loss."""
    (loss if scaler is None else scaler.scale(loss)).backward()
