"""Sample NVIDIA GPUs by NVML, through the `pynvml` module of the pip package `nvidia-ml-py`.

What the figures are (NVML API reference, device queries):

- power: of the board with its memory. A running average over 1 s on Ampere and later, but for GA100 (A100),
  whose reading is instantaneous; peaks shorter than that are not seen.
- energy: the driver's own counter in mJ, since it was loaded; Volta and later. Energy figures come from it.
- utilisation: the part of the driver's sample period in which at least one kernel ran: not how busy the
  GPU's units were.
- memory used: with what the driver itself reserves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

from utils.errors import FlagPerfError
from utils.monitors.tool import number_of
from utils.telemetry import Sample

SOURCE = "nvidia"
NOTE = (
    "NVML: power is averaged over 1 s on Ampere and later, but for A100 (instantaneous); "
    "energy is the driver's counter in mJ; utilisation is the time in which a kernel ran; "
    "memory used includes the driver's own"
)
MW_PER_W = 1000
BYTES_PER_MIB = 2**20
DESCRIBE_COMMAND = ("nvidia-smi", "-q")  # what every host with a driver has, also where there is no pynvml
# Where `nvidia-smi -q` has it: with the heading that it stands under where the name alone is not enough.
_DESCRIBED = {
    "name": "Product Name",
    "vbios": "VBIOS Version",
    "gsp_firmware": "GSP Firmware Version",
    "pci_bus": "Bus Id",
    "ecc": "ECC Mode/Current",
    "mig": "MIG Mode/Current",
    "remapped_correctable": "Remapped Rows/Correctable Error",
    "remapped_uncorrectable": "Remapped Rows/Uncorrectable Error",
}


class NvmlDevices:
    """All GPUs that NVML shows, by NVML index (the order of the PCI bus)."""

    note = NOTE

    def __init__(self, nvml: ModuleType) -> None:
        self._nvml = nvml
        self._count: int = nvml.nvmlDeviceGetCount()

    def sample(self, time_ms: int) -> Sequence[Sample]:
        """One sample a GPU; a GPU that NVML cannot reach has its `error` set."""
        return [self._sample(index, time_ms) for index in range(self._count)]

    def close(self) -> None:
        """Give NVML back."""
        self._nvml.nvmlShutdown()

    def _sample(self, index: int, time_ms: int) -> Sample:
        nvml = self._nvml
        try:
            # Asked anew at every tick: a GPU that was reset gets a new handle.
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
        except nvml.NVMLError as error:
            return Sample(time_ms, SOURCE, str(index), error=f"nvmlDeviceGetHandleByIndex: {error}")
        errors: list[str] = []

        def ask(name: str, *arguments: Any) -> Any:
            return self._ask(getattr(nvml, name), handle, *arguments, errors=errors)

        power = ask("nvmlDeviceGetPowerUsage")
        memory = ask("nvmlDeviceGetMemoryInfo")
        rates = ask("nvmlDeviceGetUtilizationRates")
        return Sample(
            time_ms,
            SOURCE,
            str(index),
            utilisation=None if rates is None else rates.gpu / 100,
            power_w=None if power is None else power / MW_PER_W,
            energy_mj=ask("nvmlDeviceGetTotalEnergyConsumption"),
            memory_used_mib=None if memory is None else memory.used / BYTES_PER_MIB,
            memory_total_mib=None if memory is None else memory.total / BYTES_PER_MIB,
            temperature_c=ask("nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU),
            error="; ".join(errors),
        )

    def describe(self) -> list[dict[str, Any]]:
        """What each GPU is; None for what it does not say."""
        nvml = self._nvml
        errors: list[str] = []
        cuda = self._ask(nvml.nvmlSystemGetCudaDriverVersion, errors=errors)
        shared = {
            "driver": self._ask(nvml.nvmlSystemGetDriverVersion, errors=errors),
            "cuda_driver": cuda and f"{cuda // 1000}.{cuda % 1000 // 10}",
        }
        return [{**self._description(index), **shared} for index in range(self._count)]

    def _description(self, index: int) -> dict[str, Any]:
        nvml = self._nvml
        errors: list[str] = []
        handle = self._ask(nvml.nvmlDeviceGetHandleByIndex, index, errors=errors)
        if errors:
            return {"error": errors[0]}

        def ask(name: str, *arguments: Any) -> Any:
            return self._ask(getattr(nvml, name), handle, *arguments, errors=errors)

        def first(name: str) -> bool | None:
            """The present mode; what it will be after the next reset stands beside it."""
            modes = ask(name)
            return None if modes is None else bool(modes[0])

        limit, memory, pci = (
            ask(f"nvmlDeviceGet{name}") for name in ("EnforcedPowerLimit", "MemoryInfo", "PciInfo")
        )
        return {
            "name": ask("nvmlDeviceGetName"),
            "vbios": ask("nvmlDeviceGetVbiosVersion"),
            "inforom": ask("nvmlDeviceGetInforomImageVersion"),
            "gsp_firmware": ask("nvmlDeviceGetGspFirmwareVersion"),
            "pci_bus": None if pci is None else pci.busId,
            "pcie_generation": ask("nvmlDeviceGetMaxPcieLinkGeneration"),
            "pcie_width": ask("nvmlDeviceGetMaxPcieLinkWidth"),
            "memory_mib": None if memory is None else memory.total / BYTES_PER_MIB,
            "power_limit_w": None if limit is None else limit / MW_PER_W,
            "max_sm_mhz": ask("nvmlDeviceGetMaxClockInfo", nvml.NVML_CLOCK_SM),
            "max_memory_mhz": ask("nvmlDeviceGetMaxClockInfo", nvml.NVML_CLOCK_MEM),
            "ecc": first("nvmlDeviceGetEccMode"),
            "mig": first("nvmlDeviceGetMigMode"),
            "error": "; ".join(errors) or None,
        }

    def _ask(self, query: Callable[..., Any], *arguments: Any, errors: list[str]) -> Any:
        """The query's answer; None where the GPU has no such sensor or fails, which stands in `errors`."""
        try:
            return query(*arguments)
        except self._nvml.NVMLError_NotSupported:
            return None
        except self._nvml.NVMLError as error:
            errors.append(f"{query.__name__}: {error}")
            return None


def describe(text: str) -> list[dict[str, Any]]:
    """What `nvidia-smi -q` says of each GPU; `error` and `doubt` are what of it asks for a hand.

    After NVIDIA's "GPU memory error management" (A100 and later): a GPU with a row that could not be remapped goes
    out of service; a pending remapping is made by a reset; volatile errors are those since the driver was loaded.
    """
    head, *blocks = re.split(r"(?m)^GPU (?=[0-9A-Fa-f]+:)", text)
    versions = _values(head)
    shared = {"driver": versions.get("Driver Version"), "cuda_driver": versions.get("CUDA Version")}
    return [{**_described(_values(block)), **shared} for block in blocks]


def _described(values: Mapping[str, str]) -> dict[str, Any]:
    def of(path: str) -> str | None:
        return next((value for name, value in values.items() if name.lower().endswith(path.lower())), None)

    volatile = [value for name, value in values.items() if "/Volatile/" in name and "Uncorrectable" in name]
    uncorrected = sum(int(value) for value in volatile if value.isdecimal())
    doubts = ["the remapping of a row is pending: reset the GPU"] * (of("Remapped Rows/Pending") == "Yes")
    doubts += [f"{uncorrected} uncorrectable ECC errors since the driver was loaded"] * bool(uncorrected)
    is_failed = of("Remapped Rows/Remapping Failure Occurred") == "Yes"
    return {
        **{name: of(path) for name, path in _DESCRIBED.items()},
        "memory_mib": number_of(of("FB Memory Usage/Total") or ""),
        "uncorrected_volatile": uncorrected,
        "error": "a row could not be remapped: have the GPU replaced" if is_failed else None,
        "doubt": "; ".join(doubts) or None,
    }


def _values(block: str) -> dict[str, str]:
    """Each value by its headings and its name, `Remapped Rows/Pending`; where a name stands twice, the first."""
    values: dict[str, str] = {}
    headings: list[tuple[int, str]] = []
    for line in block.splitlines():
        indent = len(line) - len(line.lstrip())
        name, separator, value = line.strip().partition(" : ")
        headings = [heading for heading in headings if heading[0] < indent]
        if separator:
            path = "/".join((*(heading for _, heading in headings), name.strip()))
            values.setdefault(path, value.strip())
        else:
            headings.append((indent, name))
    return values


def describe_devices() -> list[dict[str, Any]]:
    """The GPUs for the node's inventory, by their NVML index; errors see `open_devices`."""
    devices = open_devices()
    try:
        return devices.describe()
    finally:
        devices.close()


def open_devices() -> NvmlDevices:
    """Start NVML.

    Raises:
        FlagPerfError: there is no `pynvml`, no driver, or no GPU.
    """
    try:
        import pynvml
    except ImportError as error:
        raise FlagPerfError(
            "the module pynvml is not installed",
            remedy="add the pip package nvidia-ml-py to the image (or, without containers, to this Python)",
        ) from error
    try:
        pynvml.nvmlInit()
        devices = NvmlDevices(pynvml)
    except pynvml.NVMLError as error:
        raise FlagPerfError(
            f"NVML does not start: {error}",
            remedy="check nvidia-smi on the host; a container needs --gpus (capability `utility`)",
        ) from error
    return devices
