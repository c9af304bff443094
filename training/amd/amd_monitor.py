"""Sample AMD GPUs by the Python module `amdsmi` of ROCm, which the image (or the host) holds beside its libraries.

What the figures are (AMD SMI Python API; `docs/reference/amdsmi-py-api.md` of ROCm/rocm-systems, projects/amdsmi):

- power: of the socket, that is of the package with its memory, in W. Of the two dies of an MI250 one has it, of a
  partitioned package the first that told one: any other names that one, so that no package is counted twice.
- energy: the driver's counter x its resolution, in uJ. The library takes 15.3 uJ for a tick of 15.259 (2^-16 J).
- utilisation: the activity of the graphics (compute) engine.
- memory: in MiB, which the library calls MB. In a partitioned package some releases repeat the package's.
- temperature: of the hottest spot; the sensor at the edge is not there on Instinct.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from utils.errors import FlagPerfError
from utils.telemetry import Sample

SOURCE = "amd"
NOTE = (
    "AMD SMI: power is the socket's, of two dies or of several partitions one carries it; energy is the driver's "
    "counter x its resolution; utilisation is the activity of the compute engine; memory used is the whole device's"
)
ROCM = Path("/opt/rocm")
POWERS = ("socket_power", "current_socket_power", "average_socket_power")  # since ROCm 7; MI300; MI200
HIGHEST_POWER_W = 10_000  # a sensor that is not there says 65535 or 4294967295 in some releases
UW_PER_W = 1_000_000
TWO_DIES = (
    "MI250"  # and MI250X: two dies, which follow each other in rocm-smi's list (ROCm/rocm_smi_lib issue 160)
)
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
        # partitions are told apart by the function of their address alone
        addresses = [self._asked("amdsmi_get_gpu_device_bdf", handle) for handle in self._handles]
        self._packages = [str(bus or number).partition(".")[0] for number, bus in enumerate(addresses)]
        self._other_dies = self._pairs_of_dies()
        self._carriers: dict[str, str] = {}  # package -> the first device of it that told its power

    def sample(self, time_ms: int) -> Sequence[Sample]:
        """One sample a GPU; one that does not answer has its `error` set."""
        samples = [self._sample(number, time_ms) for number in range(len(self._handles))]
        for sample in samples:
            if sample.power_w is not None:
                self._carriers.setdefault(self._packages[int(sample.device)], sample.device)
        return [self._counted_once(sample) for sample in samples]

    def close(self) -> None:
        """Nothing: the library ends with the process, see `_session`."""

    def _pairs_of_dies(self) -> dict[str, str]:
        """Package -> package: an MI250 is listed as two, of which one tells the power of both."""
        about = [self._asked("amdsmi_get_gpu_asic_info", handle) or {} for handle in self._handles]
        dies = [
            self._packages[number]
            for number, asic in enumerate(about)
            if TWO_DIES in str(asic.get("market_name"))
        ]
        return {die: dies[number ^ 1] for number, die in enumerate(dies) if number ^ 1 < len(dies)}

    def _counted_once(self, sample: Sample) -> Sample:
        """Without a power that another device of the package carries, which it names."""
        package = self._packages[int(sample.device)]
        carrier = self._carriers.get(package) or self._carriers.get(self._other_dies.get(package, ""))
        if carrier in (None, sample.device):
            return sample
        return replace(sample, power_w=None, energy_mj=None, power_on=carrier)

    def _sample(self, number: int, time_ms: int) -> Sample:
        smi, handle = self._smi, self._handles[number]
        errors: list[str] = []

        def ask(name: str, *arguments: Any) -> Any:
            return self._ask(getattr(smi, name), handle, *arguments, errors=errors)

        power = _power(ask("amdsmi_get_power_info"), errors)
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

    def _asked(self, name: str, handle: Any) -> Any:
        """What is asked once, at the start; None where the GPU or the release does not say it."""
        function = getattr(self._smi, name, None)
        return None if function is None else self._ask(function, handle, errors=[])

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
    """The GPUs for the node's inventory, in AMD SMI's order; errors see `open_devices`."""
    return open_devices().describe()


def open_devices() -> AmdSmiDevices:
    """Start AMD SMI.

    Raises:
        FlagPerfError: there is no `amdsmi`, no driver, or no GPU.
    """
    with ONE_AT_A_TIME:
        return _session()


@lru_cache(maxsize=1)
def _session() -> AmdSmiDevices:
    """The library, started once: releases that count neither starts nor shutdowns drop all handles at a second one of
    either (AMDSmiSystem::init and cleanup of ROCm/amdsmi), and samples and inventory are taken in two threads.
    """
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
