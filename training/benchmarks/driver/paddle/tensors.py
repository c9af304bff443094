"""A batch's tensors, whatever holds them: made in the host's memory, then moved."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

import paddle
from numpy.typing import NDArray

from benchmarks.driver.paddle.devices import Device


def host_tensor(array: NDArray[Any], *, pinned: bool) -> paddle.Tensor:
    """`array` as a tensor in the host's memory, page-locked if `pinned`: a device can copy from it by itself."""
    return paddle.to_tensor(array, place=paddle.CUDAPinnedPlace() if pinned else paddle.CPUPlace())


def numbers_of(tensor: paddle.Tensor) -> list[float]:
    """The numbers of a vector. Waits for the device."""
    return [float(number) for number in tensor.numpy()]


class Uploads:
    """Moves batches to a device without waiting for it.

    Paddle gives page-locked memory away again as soon as its tensor is gone, also where a copy from it still
    waits its turn: a batch is kept until the device is past its copies.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self._pending: deque[tuple[Any, Any]] = deque()

    def moved(self, inputs: Any) -> Any:
        """`inputs` (a tensor, or a dataclass, dict, list or tuple with some) with its tensors on the device."""
        if self._device.is_cpu:
            return inputs
        there = _mapped(inputs, lambda tensor: tensor.to(self._device.name, blocking=False))
        self._pending.append((self._device.mark(), inputs))
        while self._pending and self._pending[0][0].query():
            self._pending.popleft()
        return there


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
