"""Sample NVIDIA GPUs by NVML, through the `pynvml` module of the pip package `nvidia-ml-py`.

What the figures are (NVML API reference, device queries and field values):

- power: of the board with its memory: the field POWER_AVERAGE, a mean of 1 s, and beside it POWER_INSTANT. Drivers
  before R530 have one value alone: a mean of 1 s on Ampere and later, but for GA100 (A100), whose reading is
  instantaneous. Peaks shorter than that are not seen.
- energy: the driver's own counter in mJ, since it was loaded; Volta and later. Energy figures come from it.
- utilisation: the part of the driver's sample period in which at least one kernel ran: not how busy the
  GPU's units were.
- memory used: with what the driver itself reserves.
- throttle: why the SM clock is lower than it could be; an idle GPU's is not told.
- PCIe: NVML counts for 20 ms and has the caller wait so long. At each tick one GPU is asked for one way, in turn.
- NVLink: what all links have carried, without protocol.
- processes: those that compute on the GPU, where this process sees all of the host's: NVML hides from a container what
  is not in it.
- ECC: errors since the driver was loaded; remapped rows: since the board was made.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, product
from pathlib import Path
from types import ModuleType
from typing import Any

from nvml_device import KIB, MW_PER_W, Device
from smi_query import DESCRIBE_COMMAND, describe

from utils.errors import FlagPerfError
from utils.telemetry import Sample

__all__ = ["DESCRIBE_COMMAND", "describe", "describe_devices", "open_devices"]
SOURCE = "nvidia"
NOTE = (
    "energy is the driver's counter in mJ; utilisation is the time in which a kernel ran; "
    "memory used includes the driver's own; PCIe: one GPU and way a tick, over 20 ms"
)
AVERAGED = "its field POWER_AVERAGE, a mean of 1 s, with POWER_INSTANT beside it"
ONE_POWER = "the only one that there is: averaged over 1 s on Ampere and later, but for A100 (instantaneous)"
BYTES_PER_MIB = 2**20
PCIE_WAYS = {
    "pcie_sent_bytes_per_s": "NVML_PCIE_UTIL_TX_BYTES",
    "pcie_received_bytes_per_s": "NVML_PCIE_UTIL_RX_BYTES",
}
# What holds the clock back, by NVML's bits, the older names among them. 0x1 is an idle GPU, which nothing holds back.
THROTTLE_REASONS = {
    0x2: "applications_clocks_setting",
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
    0x200: "board_limit",
    0x400: "reliability",
}
INITIAL_PID_NAMESPACE = 0xEFFFFFFC  # its inode number on every Linux (PROC_PID_INIT_INO)


class NvmlDevices:
    """All GPUs that NVML shows, by NVML index (the order of the PCI bus)."""

    def __init__(self, nvml: ModuleType) -> None:
        self._nvml = nvml
        self._count: int = nvml.nvmlDeviceGetCount()
        if not self._count:
            raise FlagPerfError("NVML shows no GPU")
        self._turns = cycle(product(range(self._count), PCIE_WAYS))
        self._sees_processes = Path("/proc/self/ns/pid").stat().st_ino == INITIAL_PID_NAMESPACE

    @property
    def note(self) -> str:
        """What the figures are, and which power each GPU tells."""
        averaging = [
            str(index) for index, device in enumerate(self._devices()) if "power_instant_w" in device.fields()
        ]
        averaging_gpus = ", ".join(averaging)
        if len(averaging) == self._count:
            return f"NVML: power is {AVERAGED}; {NOTE}"
        if not averaging:
            return f"NVML: power is {ONE_POWER}; {NOTE}"
        return f"NVML: power of {averaging_gpus} is {AVERAGED}, of the others {ONE_POWER}; {NOTE}"

    def sample(self, time_ms: int) -> Sequence[Sample]:
        """One sample a GPU; a GPU that NVML cannot reach has its `error` set."""
        devices = self._devices()
        readings = [self._readings(device) for device in devices]
        index, reading = next(self._turns)  # last, for it waits
        counter = getattr(self._nvml, PCIE_WAYS[reading])
        rate = devices[index].ask("nvmlDeviceGetPcieThroughput", counter) if devices[index].is_there else None
        readings[index][reading] = None if rate is None else rate * KIB
        return [
            Sample(time_ms, SOURCE, str(number), **of_one, error=devices[number].error)
            for number, of_one in enumerate(readings)
        ]

    def close(self) -> None:
        """Give NVML back."""
        self._nvml.nvmlShutdown()

    def describe(self) -> list[dict[str, Any]]:
        """What each GPU is; None for what it does not say."""
        return [self._description(device) for device in self._devices()]

    def _devices(self) -> list[Device]:
        return [Device(self._nvml, index) for index in range(self._count)]

    def _readings(self, device: Device) -> dict[str, Any]:
        if not device.is_there:
            return {}
        nvml, ask = self._nvml, device.ask
        readings: dict[str, Any] = device.fields()
        if "power_w" not in readings:
            power = ask("nvmlDeviceGetPowerUsage")
            readings["power_w"] = None if power is None else power / MW_PER_W
        memory, rates = ask("nvmlDeviceGetMemoryInfo"), ask("nvmlDeviceGetUtilizationRates")
        processes = ask("nvmlDeviceGetComputeRunningProcesses_v3") if self._sees_processes else None
        return {
            **readings,
            "utilisation": None if rates is None else rates.gpu / 100,
            "energy_mj": ask("nvmlDeviceGetTotalEnergyConsumption"),
            "memory_used_mib": None if memory is None else memory.used / BYTES_PER_MIB,
            "memory_total_mib": None if memory is None else memory.total / BYTES_PER_MIB,
            "temperature_c": ask("nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU),
            "clock_mhz": ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM),
            "memory_clock_mhz": ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_MEM),
            "throttle": _throttle(device),
            "processes": None if processes is None else len(processes),
        }

    def _description(self, device: Device) -> dict[str, Any]:
        cuda = device.call("nvmlSystemGetCudaDriverVersion")
        versions = {
            "driver": device.call("nvmlSystemGetDriverVersion"),
            "cuda_driver": cuda and f"{cuda // 1000}.{cuda % 1000 // 10}",
        }
        if not device.is_there:
            return {"error": device.error, **versions}
        nvml, ask = self._nvml, device.ask

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
            **versions,
            "error": device.error or None,
        }


def _throttle(device: Device) -> str | None:
    """Why the clock is lower than it could be: names with commas, none for no reason; drivers have two names for it."""
    for kind in ("Event", "Throttle"):
        bits = device.ask(f"nvmlDeviceGetCurrentClocks{kind}Reasons")
        if bits is not None:
            return ",".join(name for bit, name in THROTTLE_REASONS.items() if bits & bit)
    return None


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
