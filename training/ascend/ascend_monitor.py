"""Sample Ascend NPUs by DCMI, the driver's own C library (libdcmi.so, Ascend DCMI API reference).

A card is what npu-smi calls NPU; its chips are PyTorch's devices. Devices are numbered in the order of cards and
chips, as PyTorch's are.

- power: DCMI tells it in 0.1 W. Of a card with two chips (A3) it is the card's, and the first chip carries it for
  both: npu-smi shows none for the second one.
- energy: there is no counter; it is integrated from power.
- utilisation: of the AI cores.
- memory used: HBM, with the 3 to 4 GB that the system itself takes.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from utils.errors import FlagPerfError
from utils.telemetry import Sample

SOURCE = "ascend"
NOTE = (
    "DCMI: power in steps of 0.1 W, of the card: of an A3 the first chip carries it for both; "
    "no energy counter; utilisation is that of the AI cores; memory used is HBM with the system's own 3 to 4 GB"
)
LIBRARIES = ("libdcmi.so", "/usr/local/dcmi/libdcmi.so", "/usr/local/Ascend/driver/lib64/driver/libdcmi.so")
MOST_CARDS = 64
NPU = 0  # of dcmi_unit_type; a card's controller (MCU) is listed beside its chips
AI_CORE = 2  # of the kinds of utilisation
NOT_SUPPORTED = -8255
MEANINGS = {
    -8002: "not permitted", -8005: "driver not ready, or not for this user", -8006: "timeout",
    -8007: "no such device", -8008: "the device does not exist", -8012: "the device is not ready",
    -8013: "not in a container", -8017: "the device is being upgraded",
}  # fmt: skip
# Beyond these a reading is no measurement.
PLAUSIBLE = {"power": (1.0, 3000.0), "temperature": (1.0, 200.0)}

# The inventory is asked for in a thread of its own, and that DCMI may be called by two is said nowhere.
_ONE_AT_A_TIME = threading.Lock()


class HbmInfo(ctypes.Structure):
    """dcmi_hbm_info: sizes in MiB."""

    _fields_ = (
        ("memory_size", ctypes.c_ulonglong),
        ("freq", ctypes.c_uint),
        ("memory_usage", ctypes.c_ulonglong),
        ("temp", ctypes.c_int),
        ("bandwidth_util_rate", ctypes.c_uint),
    )


class ChipInfo(ctypes.Structure):
    """dcmi_chip_info_v2."""

    _fields_ = (
        ("chip_type", ctypes.c_char * 32),
        ("chip_name", ctypes.c_char * 32),
        ("chip_ver", ctypes.c_char * 32),
        ("aicore_cnt", ctypes.c_uint),
        ("npu_name", ctypes.c_char * 32),
    )


class DcmiError(Exception):
    """A call of DCMI's that failed, with its code."""

    def __init__(self, function: str, code: int) -> None:
        super().__init__(f"{function}: {code}" + (f" ({MEANINGS[code]})" if code in MEANINGS else ""))
        self.code = code


@dataclass(frozen=True)
class Chip:
    """A chip by its place: its card's number and its own within the card; `power_on`: the card's first device."""

    card: int
    number: int
    power_on: str | None  # None for the first


class DcmiDevices:
    """All chips that DCMI shows."""

    note = NOTE

    def __init__(self, library: Any) -> None:
        self._library = library
        self._call("dcmi_init")
        self._chips: list[Chip] = []
        for card in self._cards():
            self._chips += self._chips_of(card, first_device=str(len(self._chips)))
        if not self._chips:
            raise FlagPerfError("DCMI lists no NPU", remedy="check npu-smi info on the host")

    def sample(self, time_ms: int) -> Sequence[Sample]:
        """One sample a chip; what a chip does not answer stands in its `error`."""
        return [self._sample(str(index), chip, time_ms) for index, chip in enumerate(self._chips)]

    def close(self) -> None:
        """DCMI has nothing to give back."""

    def describe(self) -> list[dict[str, Any]]:
        """What each chip is; None for what it does not say."""
        driver = ctypes.create_string_buffer(64)
        errors: list[str] = []
        self._ask(errors, "dcmi_get_driver_version", driver, ctypes.c_uint(64))
        return [{**self._description(chip), "driver": _text(driver.value)} for chip in self._chips]

    def _description(self, chip: Chip) -> dict[str, Any]:
        errors: list[str] = []
        about, hbm, health = ChipInfo(), HbmInfo(), ctypes.c_uint()
        place = (chip.card, chip.number)
        self._ask(errors, "dcmi_get_device_chip_info_v2", *place, ctypes.byref(about))
        has_memory = self._ask(errors, "dcmi_get_device_hbm_info", *place, ctypes.byref(hbm))
        has_health = self._ask(errors, "dcmi_get_device_health", *place, ctypes.byref(health))
        return {
            "name": _text(about.chip_name),
            "npu_name": _text(about.npu_name),
            "chip_version": _text(about.chip_ver),
            "ai_cores": about.aicore_cnt or None,
            "card": chip.card,
            "memory_mib": hbm.memory_size if has_memory else None,
            "health": health.value if has_health else None,  # 0 is well
            "error": "; ".join(errors) or None,
        }

    def _sample(self, device: str, chip: Chip, time_ms: int) -> Sample:
        errors: list[str] = []
        place = (chip.card, chip.number)
        hbm, power, temperature, busy = HbmInfo(), ctypes.c_int(), ctypes.c_int(), ctypes.c_uint()
        has_power = chip.power_on is None and self._ask(
            errors, "dcmi_get_device_power_info", *place, ctypes.byref(power)
        )
        has_memory = self._ask(errors, "dcmi_get_device_hbm_info", *place, ctypes.byref(hbm))
        has_heat = self._ask(errors, "dcmi_get_device_temperature", *place, ctypes.byref(temperature))
        has_load = self._ask(errors, "dcmi_get_device_utilization_rate", *place, AI_CORE, ctypes.byref(busy))
        return Sample(
            time_ms,
            SOURCE,
            device,
            utilisation=busy.value / 100 if has_load else None,
            power_w=_plausible(errors, "power", power.value / 10) if has_power else None,
            memory_used_mib=float(hbm.memory_usage) if has_memory else None,
            memory_total_mib=float(hbm.memory_size) if has_memory else None,
            temperature_c=_plausible(errors, "temperature", float(temperature.value)) if has_heat else None,
            power_on=chip.power_on,
            error="; ".join(errors),
        )

    def _cards(self) -> list[int]:
        count, numbers = ctypes.c_int(), (ctypes.c_int * MOST_CARDS)()
        self._call("dcmi_get_card_list", ctypes.byref(count), numbers, MOST_CARDS)
        return list(numbers[: count.value])

    def _chips_of(self, card: int, first_device: str) -> list[Chip]:
        count = ctypes.c_int()
        self._call("dcmi_get_device_num_in_card", card, ctypes.byref(count))
        numbers = [number for number in range(count.value) if self._is_npu(card, number)]
        return [Chip(card, number, None if number == numbers[0] else first_device) for number in numbers]

    def _is_npu(self, card: int, number: int) -> bool:
        kind = ctypes.c_uint()
        self._call("dcmi_get_device_type", card, number, ctypes.byref(kind))
        return kind.value == NPU

    def _ask(self, errors: list[str], function: str, *arguments: Any) -> bool:
        """Whether there is an answer; a sensor that the chip lacks is no error."""
        try:
            self._call(function, *arguments)
        except DcmiError as error:
            if error.code != NOT_SUPPORTED:
                errors.append(str(error))
            return False
        return True

    def _call(self, function: str, *arguments: Any) -> None:
        with _ONE_AT_A_TIME:
            code = getattr(self._library, function)(*arguments)
        if code:
            raise DcmiError(function, code)


def describe_devices() -> list[dict[str, Any]]:
    """The chips for the node's inventory; errors see `open_devices`."""
    return open_devices().describe()


def open_devices() -> DcmiDevices:
    """Start DCMI.

    Raises:
        FlagPerfError: there is no library, no driver, or no chip.
    """
    try:
        return DcmiDevices(_load())
    except DcmiError as error:
        raise FlagPerfError(
            f"DCMI does not start: {error}",
            remedy="check npu-smi info on the host, as this user: the driver's files are for the group HwHiAiUser",
        ) from error


def _load() -> ctypes.CDLL:
    reasons = []
    for path in LIBRARIES:
        try:
            return ctypes.CDLL(path)
        except OSError as error:
            reasons.append(str(error))
    raise FlagPerfError(
        f"libdcmi.so cannot be loaded: {reasons[-1]}",
        remedy="the driver's installer puts it into /usr/local/dcmi; a container needs that and driver/lib64",
    )


def _plausible(errors: list[str], what: str, value: float) -> float | None:
    least, most = PLAUSIBLE[what]
    if least <= value <= most:
        return value
    errors.append(f"{what} of {value:g} is no measurement")
    return None


def _text(raw: bytes) -> str | None:
    return raw.decode("utf-8", "replace").strip() or None
