"""What the driver does in a way that a vendor may replace.

A vendor's `extern/` folder may define functions of these names, in any of its files. Each replaces the driver's own
(`driver/<framework>/hooks.py`) and has its signature. They are loaded before anything asks for the device:

    convert_model(config, model) -> model             before it goes to the device
    create_optimizer(config, model) -> optimizer      in Paddle with the gradients' clipping in it
    model_to_fp16(config, model, optimizer) -> (model, optimizer)
    model_to_ddp(config, model) -> model              only with more than one rank
    create_grad_scaler(config, device_type) -> scaler or None     as torch.amp.GradScaler or paddle.amp.GradScaler
    backward(config, loss, optimizer, scaler) -> None of one micro-batch

`config` is the driver's `Configuration`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.driver.extern import vendor_functions

Hook = Callable[..., Any]


@dataclass(frozen=True)
class Hooks:
    """The functions in use."""

    convert_model: Hook
    create_optimizer: Hook
    model_to_fp16: Hook
    model_to_ddp: Hook
    create_grad_scaler: Hook
    backward: Hook


def load_hooks(defaults: ModuleType, folder: Path | None) -> Hooks:
    """The vendor's hooks over those of a framework's module. A folder that is absent is normal.

    Raises:
        FlagPerfError: a hook is defined twice, or a function's name is nearly that of a hook.
    """
    names = [field.name for field in fields(Hooks)]
    return Hooks(**{name: getattr(defaults, name) for name in names} | vendor_functions(folder, names))
