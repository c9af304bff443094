"""Sample AMD GPUs by the Python module `amdsmi` of ROCm, which the image (or the host) holds beside its libraries.

What the figures are (AMD SMI Python API; `docs/reference/amdsmi-py-api.md` of ROCm/rocm-systems, projects/amdsmi):

- power: of the socket, that is of the package with its memory, in W. Of the two dies of an MI250 the first has it, of
  a partitioned package its first partition: any other has None, so that no package is counted twice.
- energy: the driver's counter x its resolution, in uJ. The library takes 15.3 uJ for a tick of 15.259 (2^-16 J).
- utilisation: the activity of the graphics (compute) engine.
- memory: in MiB, which the library calls MB. In a partitioned package some releases repeat the package's.
- temperature: of the hottest spot; the sensor at the edge is not there on Instinct.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from utils.errors import FlagPerfError
from utils.telemetry import Sample

SOURCE = "amd"
NOTE = (
    "AMD SMI: power is the socket's, of two dies or of several partitions the first one's; energy is the driver's "
    "counter x its resolution; utilisation is the activity of the compute engine; memory used is the whole device's"
)
ROCM = Path("/opt/rocm")
POWERS = ("socket_power", "current_socket_power", "average_socket_power")  # since ROCm 7; MI300; MI200
HIGHEST_POWER_W = 10_000  # a sensor that is not there says 65535 or 4294967295 in some releases
UW_PER_W = 1_000_000
ABSENT = (2, 3)  # AMDSMI_STATUS_NOT_SUPPORTED, AMDSMI_STATUS_NOT_YET_IMPLEMENTED
# Counters went backwards in a program that asked from several threads (ROCm/amdsmi issue 115).
ONE_AT_A_TIME = threading.RLock()


class AmdSmiDevices:
    """All GPUs that AMD SMI shows, in its order, which is not HIP's."""

    note = NOTE

    def __init__(self, smi: ModuleType) -> None:
        self._smi = smi
        self._handles = list(smi.amdsmi_get_processor_handles())
        if not self._handles:
            raise FlagPerfError(
                "AMD SMI lists no GPU", remedy="see that the container gets /dev/kfd and /dev/dri"
            )

    def sample(self, time_ms: int) -> Sequence[Sample]:
        """One sample a GPU; one that does not answer has its `error` set."""
        packages: set[str] = set()
        return [self._sample(number, time_ms, packages) for number in range(len(self._handles))]

    def close(self) -> None:
        """Give the library back."""
        self._smi.amdsmi_shut_down()

    def _sample(self, number: int, time_ms: int, packages: set[str]) -> Sample:
        smi, handle = self._smi, self._handles[number]
        errors: list[str] = []

        def ask(name: str, *arguments: Any) -> Any:
            return self._ask(getattr(smi, name), handle, *arguments, errors=errors)

        # partitions are told apart by the function of their address alone
        package = str(ask("amdsmi_get_gpu_device_bdf") or number).partition(".")[0]
        power = None if package in packages else _power(ask("amdsmi_get_power_info"), errors)
        if power is not None:
            packages.add(package)
        energy = {} if power is None else ask("amdsmi_get_energy_count") or {}
        activity = _number((ask("amdsmi_get_gpu_activity") or {}).get("gfx_activity"))
        memory = ask("amdsmi_get_gpu_vram_usage") or {}
        sensor, current = smi.AmdSmiTemperatureType.HOTSPOT, smi.AmdSmiTemperatureMetric.CURRENT
        return Sample(
            time_ms,
            SOURCE,
            str(number),
            utilisation=None if activity is None else activity / 100,
            power_w=power,
            energy_mj=_energy_mj(energy),
            memory_used_mib=_number(memory.get("vram_used")),
            memory_total_mib=_number(memory.get("vram_total")),
            temperature_c=_celsius(ask("amdsmi_get_temp_metric", sensor, current), errors),
            error="; ".join(errors),
        )

    def describe(self) -> list[dict[str, Any]]:
        """What each GPU is; None for what it does not say."""
        return [self._description(handle) for handle in self._handles]

    def _description(self, handle: Any) -> dict[str, Any]:
        errors: list[str] = []

        def of(name: str, key: str) -> Any:
            function = getattr(self._smi, name, None)  # not every release has each
            answer = None if function is None else self._ask(function, handle, errors=errors)
            value = answer.get(key) if isinstance(answer, dict) else answer
            return None if value in ("N/A", "") else value

        limit = _number(of("amdsmi_get_power_cap_info", "power_cap"))
        return {
            "name": of("amdsmi_get_gpu_asic_info", "market_name"),
            "vbios": of("amdsmi_get_gpu_vbios_info", "version"),
            "driver": of("amdsmi_get_gpu_driver_info", "driver_version"),
            "pci_bus": of("amdsmi_get_gpu_device_bdf", ""),
            "hip_id": of("amdsmi_get_gpu_enumeration_info", "hip_id"),
            "compute_partition": of("amdsmi_get_gpu_compute_partition", ""),
            "memory_partition": of("amdsmi_get_gpu_memory_partition", ""),
            "memory_mib": of("amdsmi_get_gpu_vram_usage", "vram_total"),
            "power_limit_w": limit / UW_PER_W if limit and limit > HIGHEST_POWER_W else limit,
            "error": "; ".join(errors) or None,
        }

    def _ask(self, query: Callable[..., Any], *arguments: Any, errors: list[str]) -> Any:
        """The query's answer; None where the GPU has no such sensor or fails, which stands in `errors`."""
        try:
            with ONE_AT_A_TIME:
                return query(*arguments)
        except self._smi.AmdSmiException as error:
            code = getattr(error, "get_error_code", lambda: None)()
            if code not in ABSENT:
                errors.append(f"{query.__name__}: {' '.join(str(error).split())}")
            return None


def _number(value: Any) -> float | None:
    """The library answers `N/A` in place of a number that it has not."""
    return None if isinstance(value, (str, bool)) or value is None else float(value)


def _power(info: dict[str, Any] | None, errors: list[str]) -> float | None:
    """Watts; None for 0 too, which is what the second die of a package says."""
    power = next(filter(None, (_number((info or {}).get(name)) for name in POWERS)), None)
    if power is not None and power > HIGHEST_POWER_W:
        errors.append(f"a power of {power:g} W")
        return None
    return power


def _energy_mj(count: dict[str, Any]) -> float | None:
    ticks = _number(count.get("energy_accumulator", count.get("power")))  # `power` before ROCm 6.2
    resolution = _number(count.get("counter_resolution"))
    return None if ticks is None or not resolution else ticks * resolution / 1000


def _celsius(value: Any, errors: list[str]) -> float | None:
    """Older releases answer in thousandths of a degree: no chip is hotter than 200 C or colder than 0.2 C."""
    degrees = _number(value)
    if degrees is None:
        return None
    degrees = degrees / 1000 if degrees > 200 else degrees
    if 0 < degrees <= 200:
        return degrees
    errors.append(f"a temperature of {degrees:g} C")
    return None


def describe_devices() -> list[dict[str, Any]]:
    """The GPUs for the node's inventory, in AMD SMI's order; errors see `open_devices`.

    The library is left open: its first shutdown ends it for the samples too, which are taken in another thread.
    """
    return open_devices().describe()


def open_devices() -> AmdSmiDevices:
    """Start AMD SMI.

    Raises:
        FlagPerfError: there is no `amdsmi`, no driver, or no GPU.
    """
    with ONE_AT_A_TIME:
        smi = _library()
        try:
            smi.amdsmi_init()
            return AmdSmiDevices(smi)
        except smi.AmdSmiException as error:
            raise FlagPerfError(
                f"AMD SMI does not start: {' '.join(str(error).split())}",
                remedy="check amd-smi on the host; a container needs --device=/dev/kfd --device=/dev/dri",
            ) from error


def _library() -> ModuleType:
    """The module as installed, else from where ROCm keeps it out of sight of everything else."""
    try:
        import amdsmi

        return amdsmi  # type: ignore[no-any-return]
    except ImportError as error:
        folders = [f"{folder}/share/amd_smi" for folder in (ROCM, *sorted(ROCM.glob("core-*"), reverse=True))]
        spec = PathFinder.find_spec("amdsmi", folders)
        if spec is None or spec.loader is None:
            raise FlagPerfError(
                f"the module amdsmi is not installed, nor in {', '.join(folders)}",
                remedy="use an image of ROCm that holds it; pip's package of the name lacks the library",
            ) from error
    module = sys.modules["amdsmi"] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
