"""What a vendor may replace (see `driver/hooks.py`), as the driver does it in Paddle."""

from __future__ import annotations

from typing import Any

import paddle
from paddle import Tensor, nn
from paddle.optimizer import Optimizer

from benchmarks.driver.configuration import Configuration
from benchmarks.driver.paddle.optimizers import make_optimizer

Scaler = Any  # paddle.amp.GradScaler, or a vendor's object with the same methods


def convert_model(config: Configuration, model: nn.Layer) -> nn.Layer:
    """The model as the case built it."""
    return model


def create_optimizer(config: Configuration, model: nn.Layer) -> Optimizer:
    """The optimizer that the configuration names."""
    return make_optimizer(config.driver, model)


def model_to_fp16(config: Configuration, model: nn.Layer, optimizer: Optimizer) -> tuple[nn.Layer, Optimizer]:
    """Unchanged: mixed precision is done by auto_cast, the weights stay fp32."""
    return model, optimizer


def model_to_ddp(config: Configuration, model: nn.Layer) -> nn.Layer:
    """Gradients averaged over the ranks, overlapped with the backward pass."""
    return paddle.DataParallel(model)


def create_grad_scaler(config: Configuration, device_type: str) -> Scaler:
    """A scaler for fp16, whose gradients would underflow; None for the others."""
    return paddle.amp.GradScaler(init_loss_scaling=2.0**16) if config.driver.precision == "fp16" else None


def backward(config: Configuration, loss: Tensor, optimizer: Optimizer, scaler: Scaler) -> None:
    """Gradients of one micro-batch's loss."""
    (loss if scaler is None else scaler.scale(loss)).backward()
