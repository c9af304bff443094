"""One rank's device. PyTorch's accelerators all follow the interface of `torch.cuda`."""

from __future__ import annotations

from typing import Any

import torch

from benchmarks.driver import device
from utils.errors import FlagPerfError


class Device(device.Device[torch.device]):
    """The device `device_type:local_rank`, or the CPU."""

    def __init__(self, device_type: str, local_rank: int) -> None:
        is_cpu = device_type == "cpu"
        module: Any = torch.cpu if is_cpu else _module_of(device_type)
        place = torch.device("cpu") if is_cpu else torch.device(device_type, local_rank)
        super().__init__(module, device_type, place)
        if not self.is_cpu:
            self.module.set_device(local_rank)

    def random_state(self) -> torch.Tensor | None:
        """State of the device's random generator; None on the CPU, whose generator is PyTorch's own."""
        state: torch.Tensor | None = None if self.is_cpu else self.module.get_rng_state(self.place)
        return state

    def set_random_state(self, state: torch.Tensor | None) -> None:
        """Put it back into a state that `random_state` gave."""
        if state is not None:
            self.module.set_rng_state(state, self.place)


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
