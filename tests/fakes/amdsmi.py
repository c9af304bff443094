"""FAKE amdsmi, at the library's boundary: functions, keys, units and exceptions as in AMD SMI 24.6 to 27.0."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any

NOT_SUPPORTED, BUSY = 2, 30


class FakeAmdSmi(ModuleType):
    """A machine of GPUs with these PCI addresses; `answers[(function, gpu)]` replaces an answer or is raised."""

    AmdSmiTemperatureType = SimpleNamespace(HOTSPOT=1)
    AmdSmiTemperatureMetric = SimpleNamespace(CURRENT=0)

    class AmdSmiException(Exception):  # noqa: N818 (the library's name)
        pass

    class AmdSmiLibraryException(AmdSmiException):
        def __init__(self, code: int, text: str = "AMDSMI_STATUS_BUSY - Device busy") -> None:
            super().__init__(code)
            self.code, self.text = code, text

        def get_error_code(self) -> int:
            return self.code

        def __str__(self) -> str:
            return f"Error code:\n\t{self.code} | {self.text}"

    def __init__(self, buses: tuple[str, ...] = ("0000:05:00.0", "0000:15:00.0")) -> None:
        super().__init__("amdsmi")
        self.buses, self.calls = buses, list[str]()
        self.answers: dict[tuple[str, int], Any] = {}
        # an MI355X under AMD SMI 26.2.1, idle (AMD's ROCm documentation); average_socket_power and mm_activity are
        # N/A on Instinct since MI300
        self._usual: dict[str, Any] = {
            "amdsmi_init": None,
            "amdsmi_shut_down": None,
            "amdsmi_get_power_info": {
                "socket_power": 234, "current_socket_power": 234, "average_socket_power": "N/A",
            },
            "amdsmi_get_energy_count": {"energy_accumulator": 2_000_000, "counter_resolution": 15.3},
            "amdsmi_get_gpu_activity": {"gfx_activity": 97, "umc_activity": 1, "mm_activity": "N/A"},
            "amdsmi_get_gpu_vram_usage": {"vram_total": 294896, "vram_used": 283},
            "amdsmi_get_temp_metric": 54,
            "amdsmi_get_gpu_asic_info": {"market_name": "AMD Instinct MI355X"},
            "amdsmi_get_gpu_vbios_info": {"version": "023.040.001.008.000001"},
            "amdsmi_get_gpu_driver_info": {"driver_version": "6.14.14"},
            "amdsmi_get_gpu_enumeration_info": {"hip_id": 1, "oam_id": 6},
            "amdsmi_get_gpu_compute_partition": "SPX",
            "amdsmi_get_gpu_memory_partition": "NPS1",
            "amdsmi_get_power_cap_info": {"power_cap": 1_400_000_000},
        }  # fmt: skip

    def amdsmi_get_processor_handles(self) -> list[int]:
        return list(range(len(self.buses)))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in (*self._usual, "amdsmi_get_gpu_device_bdf"):
            raise AttributeError(name)

        def function(*arguments: Any) -> Any:
            self.calls.append(name)
            gpu = arguments[0] if arguments else -1
            given = self.answers.get((name, gpu))
            if isinstance(given, Exception):
                raise given
            usual = self.buses[gpu] if name.endswith("_bdf") else self._usual[name]
            return usual if given is None else given

        function.__name__ = name
        return function
