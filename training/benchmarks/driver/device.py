"""One rank's device."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

PlaceT = TypeVar("PlaceT")


@dataclass(frozen=True)
class DeviceMemory:
    """Bytes of one device: largest allocated, largest reserved by the framework, and what it has."""

    allocated: int
    reserved: int
    total: int


class Device(Generic[PlaceT]):
    """A device, or the CPU.

    Attributes:
        module: the framework's functions for it: `torch.cuda` and its like, or `paddle.device`, which has the same.
        kind: what it is, in the framework's words: `cpu`, `cuda`, `gpu`.
        place: which one, as the framework calls it.
    """

    def __init__(self, module: Any, kind: str, place: PlaceT) -> None:
        self.module, self.kind, self.place = module, kind, place
        self.is_cpu = kind == "cpu"

    def stand_in(self) -> dict[str, Any] | None:
        """What a device says of itself that only stands in for a chip; None of any other. Its figures are no chip's."""
        about = getattr(self.module, "stand_in", None)
        return about() if about else None

    def synchronize(self) -> None:
        """Wait until the device has finished its work."""
        if not self.is_cpu:
            self.module.synchronize(self.place)

    def is_idle(self) -> bool:
        """Has the device finished all work given to it? Does not wait. The CPU has when it can ask."""
        return self.is_cpu or bool(self.module.current_stream(self.place).query())

    def timed(self, work: Callable[[], None]) -> float:
        """Seconds that the device takes for what `work` gives it, from idle to idle.

        By the device's own events; on a CPU by the monotonic clock.
        """
        self.synchronize()
        begin = self.time_mark()
        work()
        end = self.time_mark()
        if not self.is_cpu:
            end.synchronize()
        return self.seconds_between(begin, end)

    def time_mark(self) -> Any:
        """A moment: on a device when it comes to this point of its work, on a CPU now. Does not wait."""
        if self.is_cpu:
            return time.monotonic()
        event = self.module.Event(enable_timing=True)
        event.record()
        return event

    def seconds_between(self, begin: Any, end: Any) -> float:
        """Seconds between two of them, both of which the device has passed."""
        return float(end - begin if self.is_cpu else begin.elapsed_time(end) / 1000)

    def memory(self) -> DeviceMemory | None:
        """Peak memory of this process; None on the CPU, which has no memory of its own."""
        if self.is_cpu:
            return None
        return DeviceMemory(
            allocated=self.module.max_memory_allocated(self.place),
            reserved=self.module.max_memory_reserved(self.place),
            total=self.module.get_device_properties(self.place).total_memory,
        )
