"""Sample Moore Threads GPUs by MTML, through the module `pymtml` of the pip package `mthreads-ml-py`.

What the figures are (mtml_2.2.0.h of github.com/MooreThreads/mthreads-ml-py):

- power: of the device and the circuitry that belongs to it, in mW; over what time is not said.
- energy: MTML has no counter.
- utilisation: in percent; MTML does not say what of.
- memory used: in bytes; with what the driver itself holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from utils.errors import FlagPerfError
from utils.telemetry.records import Sample

SOURCE = "mthreads"
NOTE = (
    "MTML: power is of the device and its circuitry; there is no energy counter; utilisation is MTML's, which does not "
    "say what of; memory used includes the driver's own"
)
MW_PER_W = 1000
BYTES_PER_MIB = 2**20
# No board idles below the one or draws more than the other: a value outside is none, or is in another unit.
LEAST_W, MOST_W = 1, 5000


class MtmlDevices:
    """All GPUs that MTML shows, by its index."""

    note = NOTE

    def __init__(self, mtml: ModuleType) -> None:
        self._mtml = mtml
        self._count: int = mtml.mtmlLibraryCountDevice()

    def sample(self, time_ms: int) -> Sequence[Sample]:
        """One sample a GPU; a GPU that MTML cannot reach has its `error` set."""
        return [self._sample(index, time_ms) for index in range(self._count)]

    def describe(self) -> list[dict[str, Any]]:
        """What each GPU is; None for what it does not say."""
        errors: list[str] = []
        driver = self._ask(self._driver, errors=errors)
        return [{**self._description(index), "driver": driver} for index in range(self._count)]

    def close(self) -> None:
        """Give MTML back."""
        self._mtml.mtmlLibraryShutDown()

    def _sample(self, index: int, time_ms: int) -> Sample:
        mtml, errors = self._mtml, list[str]()
        # Asked anew at every tick: a GPU that was reset gets a new handle.
        device = self._ask(mtml.mtmlLibraryInitDeviceByIndex, index, errors=errors)
        if device is None:
            return Sample(time_ms, SOURCE, str(index), error=errors[0] if errors else "it is not supported")
        try:
            percent = self._of_part("Gpu", "mtmlGpuGetUtilization", device, errors)
            temperature = self._of_part("Gpu", "mtmlGpuGetTemperature", device, errors)
            used = self._of_part("Memory", "mtmlMemoryGetUsed", device, errors)
            total = self._of_part("Memory", "mtmlMemoryGetTotal", device, errors)
            power = _plausible(self._ask(mtml.mtmlDeviceGetPowerUsage, device, errors=errors), errors)
        finally:
            mtml.mtmlLibraryFreeDevice(device)
        return Sample(
            time_ms,
            SOURCE,
            str(index),
            utilisation=None if percent is None else percent / 100,
            power_w=power,
            memory_used_mib=None if used is None else used / BYTES_PER_MIB,
            memory_total_mib=None if total is None else total / BYTES_PER_MIB,
            temperature_c=temperature,
            error="; ".join(errors),
        )

    def _description(self, index: int) -> dict[str, Any]:
        mtml, errors = self._mtml, list[str]()
        device = self._ask(mtml.mtmlLibraryInitDeviceByIndex, index, errors=errors)
        if device is None:
            return {"error": errors[0] if errors else "it is not supported"}
        try:
            pci = self._ask(mtml.mtmlDeviceGetPciInfo, device, errors=errors)
            total = self._of_part("Memory", "mtmlMemoryGetTotal", device, errors)
            return {
                "name": self._ask(mtml.mtmlDeviceGetName, device, errors=errors),
                "vbios": self._ask(mtml.mtmlDeviceGetMtBiosVersion, device, errors=errors),
                "pci_bus": None if pci is None else pci.sbdf,
                "pcie_generation": None if pci is None else pci.pciCurGen,
                "pcie_width": None if pci is None else pci.pciCurWidth,
                "memory_mib": None if total is None else total / BYTES_PER_MIB,
                "max_sm_mhz": self._of_part("Gpu", "mtmlGpuGetMaxClock", device, errors),
                "max_memory_mhz": self._of_part("Memory", "mtmlMemoryGetMaxClock", device, errors),
                "error": "; ".join(errors) or None,
            }
        finally:
            mtml.mtmlLibraryFreeDevice(device)

    def _driver(self) -> str:
        system = self._mtml.mtmlLibraryInitSystem()
        try:
            return str(self._mtml.mtmlSystemGetDriverVersion(system))
        finally:
            self._mtml.mtmlLibraryFreeSystem(system)

    def _of_part(self, part: str, query: str, device: Any, errors: list[str]) -> Any:
        """What `query` says of the device's `Gpu` or `Memory`, which MTML opens and closes by themselves."""

        def ask() -> Any:
            with getattr(self._mtml, f"mtml{part}Context")(device) as opened:
                return getattr(self._mtml, query)(opened)

        ask.__name__ = query
        return self._ask(ask, errors=errors)

    def _ask(self, query: Callable[..., Any], *arguments: Any, errors: list[str]) -> Any:
        """The query's answer; None where the GPU has no such sensor or fails, which stands in `errors`."""
        try:
            return query(*arguments)
        except self._mtml.MTMLError_NotSupported:
            return None
        except self._mtml.MTMLError as error:
            errors.append(f"{query.__name__}: {error}")
            return None


def _plausible(milliwatts: int | None, errors: list[str]) -> float | None:
    if milliwatts is None:
        return None
    watts = milliwatts / MW_PER_W
    if LEAST_W <= watts <= MOST_W:
        return watts
    errors.append(f"mtmlDeviceGetPowerUsage: {milliwatts} mW cannot be the power of a GPU")
    return None


def describe_devices() -> list[dict[str, Any]]:
    """The GPUs for the node's inventory, by their index; errors see `open_devices`.

    MTML is left open: releases of pymtml that do not count starts end it for the samples too, taken in another thread.
    """
    return open_devices().describe()


def open_devices() -> MtmlDevices:
    """Start MTML.

    Raises:
        FlagPerfError: there is no `pymtml`, no library below it, no driver, or no GPU.
    """
    try:
        import pymtml
    except ImportError as error:
        raise FlagPerfError(
            "the module pymtml is not installed",
            remedy="add the pip package mthreads-ml-py to the image (or, without containers, to this Python)",
        ) from error
    remedy = "check mthreads-gmi on the host; a container gets libmtml.so from the host's container toolkit"
    try:
        pymtml.mtmlLibraryInit()
        devices = MtmlDevices(pymtml)
    except (pymtml.MTMLError, OSError) as error:
        raise FlagPerfError(f"MTML does not start: {error}", remedy=remedy) from error
    return devices
