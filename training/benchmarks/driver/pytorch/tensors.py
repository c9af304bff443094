"""Move a batch's tensors, whatever holds them."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import torch


def moved(inputs: Any, device: torch.device) -> Any:
    """`inputs` (a tensor, or a dataclass, dict, list or tuple with some) with its tensors on `device`.

    Copies from pinned memory do not wait for the device.
    """
    if device.type == "cpu":
        return inputs
    return _mapped(inputs, lambda tensor: tensor.to(device, non_blocking=True))


def pinned(inputs: Any) -> Any:
    """`inputs` with its tensors in page-locked memory, from which a device can copy by itself."""
    return _mapped(inputs, lambda tensor: tensor.pin_memory())


def _mapped(value: Any, function: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return function(value)
    if is_dataclass(value) and not isinstance(value, type):
        changed = {field.name: _mapped(getattr(value, field.name), function) for field in fields(value)}
        return type(value)(**changed)
    if isinstance(value, dict):
        return {key: _mapped(item, function) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_mapped(item, function) for item in value)
    return value
