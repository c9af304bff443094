"""What `torch.<device type>` is of a device that is not there: the functions that `torch.cuda` has."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch

KIB = 1024


class Event:
    """A moment of the host's clock: all work is done when it is given."""

    def __init__(self, enable_timing: bool = False) -> None:
        self.seconds = 0.0

    def record(self, stream: object = None) -> None:
        """Now."""
        self.seconds = time.monotonic()

    def synchronize(self) -> None:
        """It has happened."""

    def query(self) -> bool:
        """Whether it has."""
        return True

    def elapsed_time(self, later: Event) -> float:
        """Milliseconds until `later`."""
        return (later.seconds - self.seconds) * 1000


class StandInDevice:
    """Devices whose memory is the host's and whose work is done at once.

    PyTorch's guard of what is written in Python knows one: a rank's tensors are on number 0, whatever its own is.
    """

    Event: Any = Event

    def __init__(self, device_type: str, backend: str, operators: Callable[[], dict[str, Any]]) -> None:
        self._name, self._backend, self._operators = device_type, backend, operators

    def stand_in(self) -> dict[str, Any]:
        """What this is, for the driver's events: no figure of it is the chip's."""
        return {"device": self._name, "backend": self._backend, **self._operators()}

    def is_available(self) -> bool:
        return True

    def is_initialized(self) -> bool:
        return True

    def device_count(self) -> int:
        """As many as the node has ranks."""
        return int(os.environ.get("LOCAL_WORLD_SIZE", "1"))

    def current_device(self) -> int:
        return 0

    def set_device(self, device: object) -> None:
        """There is one."""

    def synchronize(self, device: object = None) -> None:
        """Nothing is under way."""

    def current_stream(self, device: object = None) -> Any:
        """Whose work is done; an event has all that is asked of a stream."""
        return Event()

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16, torch.float16]

    def get_rng_state(self, device: object = None) -> torch.Tensor:
        """Random numbers are the host's."""
        return torch.get_rng_state()

    def set_rng_state(self, state: torch.Tensor, device: object = None) -> None:
        torch.set_rng_state(state)

    def manual_seed_all(self, seed: int) -> None:
        """PyTorch seeds the host's generator itself."""

    def max_memory_allocated(self, device: object = None) -> int:
        """Bytes: the most that this process has held."""
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KIB

    max_memory_reserved = max_memory_allocated

    def get_device_properties(self, device: object = None) -> SimpleNamespace:
        return SimpleNamespace(total_memory=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))

    def _is_in_bad_fork(self) -> bool:
        return False
