"""What the driver does in a way that a vendor may replace.

A vendor's `extern/` folder may define functions of these names, in any of its files. Each replaces the
driver's own and has its signature. They are loaded before anything asks for the device.
    convert_model(config, model) -> model
    create_optimizer(config, model) -> optimizer       with the gradients' clipping in it
    model_to_fp16(config, model, optimizer) -> (model, optimizer)
    model_to_ddp(config, model) -> model               only with more than one rank
    create_grad_scaler(config, device_type) -> scaler or None     as paddle.amp.GradScaler
    backward(config, loss, optimizer, scaler) -> None  of one micro-batch

`config` is the driver's `Configuration`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import paddle
from paddle import Tensor, nn
from paddle.optimizer import Optimizer

from benchmarks.driver.configuration import Configuration
from benchmarks.driver.extern import vendor_functions
from benchmarks.driver.paddle.optimizers import make_optimizer

_ModelAndOptimizer = tuple[nn.Layer, Optimizer]
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


@dataclass(frozen=True)
class Hooks:
    """The functions in use: the driver's own where the vendor has none."""

    convert_model: Callable[[Configuration, nn.Layer], nn.Layer] = convert_model
    create_optimizer: Callable[[Configuration, nn.Layer], Optimizer] = create_optimizer
    model_to_fp16: Callable[[Configuration, nn.Layer, Optimizer], _ModelAndOptimizer] = model_to_fp16
    model_to_ddp: Callable[[Configuration, nn.Layer], nn.Layer] = model_to_ddp
    create_grad_scaler: Callable[[Configuration, str], Scaler] = create_grad_scaler
    backward: Callable[[Configuration, Tensor, Optimizer, Scaler], None] = backward


HOOK_NAMES = tuple(field.name for field in fields(Hooks))


def load_hooks(folder: Path | None) -> Hooks:
    """The vendor's hooks over the driver's. A folder that is absent is normal.

    Raises:
        FlagPerfError: a hook is defined twice, or a function's name is nearly that of a hook.
    """
    return replace(Hooks(), **vendor_functions(folder, HOOK_NAMES))
