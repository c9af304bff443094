"""A batch's tensors, whatever holds them: made in the host's memory, then moved."""

from __future__ import annotations

from collections import deque
from typing import Any

import paddle
from numpy.typing import NDArray

from benchmarks.driver.batches import mapped
from benchmarks.driver.paddle.devices import Device


def host_tensor(array: NDArray[Any], *, pinned: bool) -> paddle.Tensor:
    """`array` as a tensor in the host's memory, page-locked if `pinned`: a device can copy from it by itself."""
    return paddle.to_tensor(array, place=paddle.CUDAPinnedPlace() if pinned else paddle.CPUPlace())


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
        there = mapped(inputs, paddle.Tensor, lambda tensor: tensor.to(self._device.place, blocking=False))
        self._pending.append((self._device.mark(), inputs))
        while self._pending and self._pending[0][0].query():
            self._pending.popleft()
        return there
