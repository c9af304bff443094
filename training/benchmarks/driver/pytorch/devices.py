"""One rank's device. PyTorch's accelerators all follow the interface of `torch.cuda`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.driver.engine import DeviceMemory
from utils.errors import FlagPerfError


class Device:
    """The device `device_type:local_rank`, or the CPU."""

    def __init__(self, device_type: str, local_rank: int) -> None:
        self.is_cpu = device_type == "cpu"
        self._module: Any = torch.cpu if self.is_cpu else _module_of(device_type)
        self.torch = torch.device("cpu") if self.is_cpu else torch.device(device_type, local_rank)
        if not self.is_cpu:
            self._module.set_device(local_rank)

    def synchronize(self) -> None:
        """Wait until the device has finished its work."""
        if not self.is_cpu:
            self._module.synchronize()

    def is_idle(self) -> bool:
        """Has the device finished all work given to it? The CPU has when it can ask."""
        return self.is_cpu or bool(self._module.current_stream().query())

    def timed(self, work: Callable[[], None]) -> float:
        """Seconds that the device takes for what `work` gives it, by its own events; of the CPU, by the clock."""
        self.synchronize()
        if self.is_cpu:
            started = time.monotonic()
            work()
            return time.monotonic() - started
        begin, end = (self._module.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) / 1000

    def memory(self) -> DeviceMemory | None:
        """Peak memory of this process; None on the CPU, which has no memory of its own."""
        if self.is_cpu:
            return None
        return DeviceMemory(
            allocated=self._module.max_memory_allocated(),
            reserved=self._module.max_memory_reserved(),
            total=self._module.get_device_properties(self.torch).total_memory,
        )

    def random_state(self) -> torch.Tensor | None:
        """State of the device's random generator; None on the CPU, whose generator is PyTorch's own."""
        state: torch.Tensor | None = None if self.is_cpu else self._module.get_rng_state(self.torch)
        return state

    def set_random_state(self, state: torch.Tensor | None) -> None:
        """Put it back into a state that `random_state` gave."""
        if state is not None:
            self._module.set_rng_state(state, self.torch)


def _module_of(device_type: str) -> Any:
    """`torch.cuda` and its like."""
    module = getattr(torch, device_type, None)
    if module is None or not module.is_available():
        raise FlagPerfError(
            f"PyTorch sees no {device_type} device",
            where="this rank's process",
            remedy=f"check the driver, the container's device options and torch {torch.__version__}'s build",
        )
    return module
