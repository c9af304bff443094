"""One rank's device, under Paddle's own names."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import paddle

from benchmarks.driver.engine import DeviceMemory
from utils.errors import FlagPerfError

# What a vendor's DEVICE_TYPE is called here; others (xpu, npu, ...) bear the same name.
_PADDLE_NAMES = {"cuda": "gpu"}


class Device:
    """The device `device_type` number `local_rank`, or the CPU."""

    def __init__(self, device_type: str, local_rank: int) -> None:
        self.kind = _PADDLE_NAMES.get(device_type, device_type)
        self.is_cpu = self.kind == "cpu"
        self.name = "cpu" if self.is_cpu else f"{self.kind}:{local_rank}"
        if not (self.is_cpu or _is_there(self.kind)):
            raise FlagPerfError(
                f"Paddle sees no {self.kind} device",
                where="this rank's process",
                remedy="check the driver, the container's device options and the build of "
                f"paddle {paddle.version.full_version}",
            )
        paddle.device.set_device(self.name)

    def synchronize(self) -> None:
        """Wait until the device has finished its work."""
        if not self.is_cpu:
            paddle.device.synchronize(self.name)

    def is_idle(self) -> bool:
        """Has the device finished all work given to it? The CPU has when it can ask."""
        return self.is_cpu or bool(paddle.device.current_stream(self.name).query())

    def mark(self) -> Any:
        """Something whose `query()` is true once the device has done all that it was given until now."""
        event = paddle.device.Event()
        event.record()
        return event

    def timed(self, work: Callable[[], None]) -> float:
        """Seconds that the device takes for what `work` gives it, by its own events; of the CPU, by the clock."""
        self.synchronize()
        if self.is_cpu:
            started = time.monotonic()
            work()
            return time.monotonic() - started
        begin, end = (paddle.device.Event(enable_timing=True) for _ in range(2))
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
            allocated=paddle.device.max_memory_allocated(self.name),
            reserved=paddle.device.max_memory_reserved(self.name),
            total=paddle.device.get_device_properties(self.name).total_memory,
        )


def _is_there(kind: str) -> bool:
    """Is Paddle built for this kind, and does the driver show at least one?"""
    if kind != "gpu":
        return kind in {
            *paddle.device.get_all_device_type(),
            *(paddle.device.get_all_custom_device_type() or ()),
        }
    return bool(paddle.device.is_compiled_with_cuda() and paddle.device.cuda.device_count())
