"""One rank's device, under Paddle's own names."""

from __future__ import annotations

from typing import Any

import paddle

from benchmarks.driver import device
from utils.errors import FlagPerfError

# What a vendor's DEVICE_TYPE is called here; others (xpu, npu, ...) bear the same name.
_PADDLE_NAMES = {"cuda": "gpu"}


class Device(device.Device[str]):
    """The device `device_type` number `local_rank`, or the CPU."""

    def __init__(self, device_type: str, local_rank: int) -> None:
        kind = _PADDLE_NAMES.get(device_type, device_type)
        super().__init__(paddle.device, kind, kind if kind == "cpu" else f"{kind}:{local_rank}")
        if not (self.is_cpu or _is_there(kind)):
            raise FlagPerfError(
                f"Paddle sees no {kind} device",
                where="this rank's process",
                remedy="check the driver, the container's device options and the build of "
                f"paddle {paddle.version.full_version}",
            )
        paddle.device.set_device(self.place)

    def mark(self) -> Any:
        """Something whose `query()` is true once the device has done all that it was given until now."""
        event = paddle.device.Event()
        event.record()
        return event


def _is_there(kind: str) -> bool:
    """Is Paddle built for this kind, and does the driver show at least one?"""
    if kind != "gpu":
        return kind in {
            *paddle.device.get_all_device_type(),
            *(paddle.device.get_all_custom_device_type() or ()),
        }
    return bool(paddle.device.is_compiled_with_cuda() and paddle.device.cuda.device_count())
