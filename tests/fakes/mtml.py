"""FAKE pymtml, at the library's boundary. Its functions, units and exceptions are those of mthreads-ml-py 2.4."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

MIB = 2**20


class FakeMtml(ModuleType):
    """A machine of two S5000; `answers[(function, gpu)]` replaces an answer or is raised. A device is its index.

    `opened` are devices and parts of devices that were not closed again.
    """

    class MTMLError(Exception):
        pass

    class MTMLError_NotSupported(MTMLError):  # noqa: N801, N818 (the library's own name)
        pass

    class MTMLError_GpuIsLost(MTMLError):  # noqa: N801, N818 (the library's own name)
        pass

    def __init__(self) -> None:
        super().__init__("pymtml")
        self.answers: dict[tuple[str, int], Any] = {}
        self.opened: list[str] = []
        for name, answer in self._machine().items():
            setattr(self, name, self._function(name, answer))
        self.mtmlGpuContext = self.mtmlMemoryContext = self._context

    def _machine(self) -> dict[str, Callable[..., Any]]:
        opened = self.opened
        return {
            "mtmlLibraryInit": lambda: opened.append("library"),
            "mtmlLibraryShutDown": lambda: opened.remove("library"),
            "mtmlLibraryCountDevice": lambda: 2,
            "mtmlLibraryInitDeviceByIndex": lambda index: opened.append(f"device {index}") or index,  # type: ignore[func-returns-value]
            "mtmlLibraryFreeDevice": lambda index: opened.remove(f"device {index}"),
            "mtmlLibraryInitSystem": lambda: opened.append("system") or -1,  # type: ignore[func-returns-value]
            "mtmlLibraryFreeSystem": lambda system: opened.remove("system"),
            "mtmlSystemGetDriverVersion": lambda system: "5.2.0-server",
            "mtmlDeviceGetName": lambda device: "MTT S5000",
            "mtmlDeviceGetMtBiosVersion": lambda device: "4.3.41",
            "mtmlDeviceGetPowerUsage": lambda device: 96_660,
            "mtmlDeviceGetPciInfo": lambda device: SimpleNamespace(
                sbdf=f"00000000:{device + 42:02x}:00.0", pciCurGen=5, pciCurWidth=16
            ),
            "mtmlGpuGetUtilization": lambda gpu: 98,
            "mtmlGpuGetTemperature": lambda gpu: 47,
            "mtmlGpuGetMaxClock": lambda gpu: 1750,
            "mtmlMemoryGetUsed": lambda memory: 10 * MIB,
            "mtmlMemoryGetTotal": lambda memory: 81920 * MIB,
            "mtmlMemoryGetMaxClock": lambda memory: 20000,
        }

    @contextmanager
    def _context(self, device: int) -> Iterator[int]:
        self.opened.append("part")
        try:
            yield device
        finally:
            self.opened.remove("part")

    def _function(self, name: str, answer: Callable[..., Any]) -> Callable[..., Any]:
        def function(*arguments: Any) -> Any:
            given = self.answers.get((name, arguments[0] if arguments else -1))
            if isinstance(given, Exception):
                raise given
            return answer(*arguments) if given is None else given

        function.__name__ = name
        return function
