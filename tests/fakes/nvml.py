"""FAKE pynvml, at the library's boundary. Its functions, units and exceptions are those of nvidia-ml-py 13."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

GIB = 2**30


class FakeNvml(ModuleType):
    """A machine of two GPUs; `answers[(function, gpu)]` replaces an answer or is raised."""

    NVML_TEMPERATURE_GPU = 0
    NVML_CLOCK_SM, NVML_CLOCK_MEM = 1, 2

    class NVMLError(Exception):
        pass

    class NVMLError_NotSupported(NVMLError):  # noqa: N801, N818 (the library's own name)
        pass

    class NVMLError_GpuIsLost(NVMLError):  # noqa: N801, N818 (the library's own name)
        pass

    def __init__(self) -> None:
        super().__init__("pynvml")
        self.answers: dict[tuple[str, int], Any] = {}
        self.energy_mj = 1_000_000
        self.calls: list[str] = []
        for name, answer in self._machine().items():
            setattr(self, name, self._function(name, answer))

    def _machine(self) -> dict[str, Callable[..., Any]]:
        return {
            "nvmlInit": lambda: None,
            "nvmlShutdown": lambda: None,
            "nvmlDeviceGetCount": lambda: 2,
            "nvmlDeviceGetHandleByIndex": lambda index: index,
            "nvmlDeviceGetPowerUsage": lambda gpu: 61_400,
            "nvmlDeviceGetTotalEnergyConsumption": self._energy,
            "nvmlDeviceGetMemoryInfo": lambda gpu: SimpleNamespace(total=40 * GIB, used=GIB, free=39 * GIB),
            "nvmlDeviceGetUtilizationRates": lambda gpu: SimpleNamespace(gpu=98, memory=40),
            "nvmlDeviceGetTemperature": lambda gpu, sensor: 33,
            "nvmlSystemGetDriverVersion": lambda: "570.86.15",
            "nvmlSystemGetCudaDriverVersion": lambda: 12080,
            "nvmlDeviceGetName": lambda gpu: "NVIDIA A100-SXM4-40GB",
            "nvmlDeviceGetVbiosVersion": lambda gpu: "92.00.45.00.03",
            "nvmlDeviceGetInforomImageVersion": lambda gpu: "G506.0200.00.04",
            "nvmlDeviceGetGspFirmwareVersion": lambda gpu: b"570.86.15",
            "nvmlDeviceGetPciInfo": lambda gpu: SimpleNamespace(busId=f"00000000:{gpu + 7:02X}:00.0"),
            "nvmlDeviceGetMaxPcieLinkGeneration": lambda gpu: 4,
            "nvmlDeviceGetMaxPcieLinkWidth": lambda gpu: 16,
            "nvmlDeviceGetEnforcedPowerLimit": lambda gpu: 400_000,
            "nvmlDeviceGetMaxClockInfo": lambda gpu, clock: {1: 1410, 2: 1215}[clock],
            "nvmlDeviceGetEccMode": lambda gpu: [1, 0],
            "nvmlDeviceGetMigMode": lambda gpu: [0, 0],
        }

    def _energy(self, gpu: int) -> int:
        self.energy_mj += 10_000
        return self.energy_mj

    def _function(self, name: str, answer: Callable[..., Any]) -> Callable[..., Any]:
        def function(*arguments: Any) -> Any:
            self.calls.append(name)
            given = self.answers.get((name, arguments[0] if arguments else -1))
            if isinstance(given, Exception):
                raise given
            return answer(*arguments) if given is None else given

        function.__name__ = name
        return function
