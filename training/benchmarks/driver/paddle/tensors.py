"""A batch's tensors, whatever holds them: made in the host's memory, then moved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

import paddle
from numpy.typing import NDArray


def host_tensor(array: NDArray[Any], *, pinned: bool) -> paddle.Tensor:
    """`array` as a tensor in the host's memory, page-locked if `pinned`: a device can copy from it by itself."""
    return paddle.to_tensor(array, place=paddle.CUDAPinnedPlace() if pinned else paddle.CPUPlace())


def numbers_of(tensor: paddle.Tensor) -> list[float]:
    """The numbers of a vector. Waits for the device."""
    return [float(number) for number in tensor.numpy()]


def moved(inputs: Any, device: str) -> Any:
    """`inputs` (a tensor, or a dataclass, dict, list or tuple with some) with its tensors on `device`.

    Copies from page-locked memory do not wait for the device.
    """
    if device == "cpu":
        return inputs
    return _mapped(inputs, lambda tensor: tensor.to(device, blocking=False))


def _mapped(value: Any, function: Callable[[paddle.Tensor], paddle.Tensor]) -> Any:
    if isinstance(value, paddle.Tensor):
        return function(value)
    if is_dataclass(value) and not isinstance(value, type):
        changed = {field.name: _mapped(getattr(value, field.name), function) for field in fields(value)}
        return type(value)(**changed)
    if isinstance(value, dict):
        return {key: _mapped(item, function) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_mapped(item, function) for item in value)
    return value
