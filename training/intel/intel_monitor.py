"""Sample Intel GPUs by Level Zero's Sysman, through the module `pyzes` of the pip package of that name, Intel's own.

A device here is a card, of two stacks where it has them, so that its power is counted once: card 0 of a host of Max
1550 is `xpu:0` and `xpu:1`. What the figures are (Level Zero specification, Sysman):

- energy: the card's counter, in uJ. power: what it grew by since the sample before; the first sample has none.
- utilisation: the time in which any engine was at work since the sample before, the mean of the stacks. Drivers of the
  Max 1550 are known that do not tell it.
- memory: of all modules of the card.
- temperature: of the hottest stack, for root and whom /sys/class/intel_pmt is open to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import byref, c_double, c_uint32, c_void_p, cast, pointer
from dataclasses import dataclass, field
from functools import partial
from types import ModuleType
from typing import Any

from utils.errors import FlagPerfError
from utils.telemetry import Sample

SOURCE = "intel"
NOTE = (
    "Level Zero Sysman, by card: energy is the card's counter, power its growth between two samples; utilisation is "
    "the time in which any engine worked; memory used is the whole card's"
)
BYTES_PER_MIB = 2**20
UJ_PER_MJ = 1000
HIGHEST_POWER_W = 10_000
HIGHEST_C = 150
# ZE_RESULT_ERROR_: INSUFFICIENT_PERMISSIONS, NOT_AVAILABLE, DEPENDENCY_UNAVAILABLE, UNSUPPORTED_FEATURE
ABSENT = (0x70010000, 0x70010001, 0x70020000, 0x78000003)
DOMAINS = (1, 2, 0)  # zes_power_domain_t: the card's, else the package's, else one that does not say


@dataclass(frozen=True)
class Part:
    """What a card has several of, as Level Zero names it; those are sampled whose property `key` is `value`."""

    handle: str
    struct: str
    listed: str
    function: str
    key: str
    value: int


POWERS = Part("pwr", "power", "PowerDomains", "Power", "onSubdevice", 0)
ENGINES = Part("engine", "engine", "EngineGroups", "Engine", "type", 0)  # all engines together
MEMORIES = Part("mem", "mem", "MemoryModules", "Memory", "location", 1)  # on the device
SENSORS = Part("temp", "temp", "TemperatureSensors", "Temperature", "type", 1)  # of the GPU


class SensorError(Exception):
    """A call that Level Zero did not carry out, with its `code`; or a value that cannot be."""

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.code = code


@dataclass
class Card:
    """A card's handles, and the counters of its last sample, each with its time in us."""

    device: Any
    trouble: list[str] = field(default_factory=list)
    powers: dict[int, Any] = field(default_factory=dict)  # by domain
    engines: Sequence[Any] = ()
    memories: Sequence[Any] = ()
    sensors: Sequence[Any] = ()
    last_energy: tuple[int, int] | None = None
    last_active: Sequence[tuple[int, int]] = ()


class SysmanDevices:
    """All cards that Level Zero shows, in its order."""

    note = NOTE

    def __init__(self, zes: ModuleType) -> None:
        self._zes = zes
        self._call("zesInit", 0)
        drivers = self._handles("zesDriverGet", zes.zes_driver_handle_t)
        listed = [self._handles("zesDeviceGet", zes.zes_device_handle_t, driver) for driver in drivers]
        self._cards = [self._card(device) for devices in listed for device in devices]
        if not self._cards:
            raise FlagPerfError("Level Zero lists no GPU", remedy="see that the container gets /dev/dri")

    def sample(self, time_ms: int) -> Sequence[Sample]:
        """One sample a card; a card that does not answer has its `error` set."""
        return [self._sample(card, str(number), time_ms) for number, card in enumerate(self._cards)]

    def close(self) -> None:
        """Nothing: Sysman ends with the process."""

    def describe(self) -> list[dict[str, Any]]:
        """What each card is; None for what it does not say."""
        return [self._description(card) for card in self._cards]

    def _sample(self, card: Card, number: str, time_ms: int) -> Sample:
        errors = list(card.trouble)

        def ask(query: Callable[[Card], Any]) -> Any:
            return _answer(lambda: query(card), errors)

        energy, power = ask(self._energy) or (None, None)
        used, total = ask(self._memory) or (None, None)
        return Sample(
            time_ms,
            SOURCE,
            number,
            utilisation=ask(self._utilisation),
            power_w=power,
            energy_mj=energy,
            memory_used_mib=used,
            memory_total_mib=total,
            temperature_c=ask(self._temperature),
            error="; ".join(errors),
        )

    def _energy(self, card: Card) -> tuple[float, float | None] | None:
        """The counter in mJ, and what it grew by in W."""
        domain = next((each for each in DOMAINS if each in card.powers), None)
        if domain is None:
            return None
        counter = self._zes.zes_power_energy_counter_t()
        self._filled("zesPowerGetEnergyCounter", card.powers[domain], counter)
        before, card.last_energy = card.last_energy, (counter.energy, counter.timestamp)
        power = before and _growth(before, card.last_energy)
        return counter.energy / UJ_PER_MJ, _within(HIGHEST_POWER_W, power or None, "power", "W")

    def _utilisation(self, card: Card) -> float | None:
        stats = [
            self._filled("zesEngineGetActivity", each, self._zes.zes_engine_stats_t())
            for each in card.engines
        ]
        before, card.last_active = card.last_active, [(each.activeTime, each.timestamp) for each in stats]
        parts = [_growth(*pair) for pair in zip(before, card.last_active)]  # noqa: B905 (Python 3.8)
        measured = [part for part in parts if part is not None]
        return min(sum(measured) / len(measured), 1.0) if measured else None

    def _memory(self, card: Card) -> tuple[float, float] | None:
        """Used and in all, in MiB."""
        states = [
            self._filled("zesMemoryGetState", each, self._struct("mem_state")) for each in card.memories
        ]
        total, free = sum(each.size for each in states), sum(each.free for each in states)
        return ((total - free) / BYTES_PER_MIB, total / BYTES_PER_MIB) if total else None

    def _temperature(self, card: Card) -> float | None:
        degrees = [self._filled("zesTemperatureGetState", each, c_double()).value for each in card.sensors]
        return _within(HIGHEST_C, max(degrees, default=None), "temperature", "C")

    def _description(self, card: Card) -> dict[str, Any]:
        errors = list(card.trouble)
        about = _answer(
            lambda: self._filled("zesDeviceGetProperties", card.device, self._struct("device_properties")),
            errors,
        )
        memory = _answer(lambda: self._memory(card), errors)
        return {
            "name": about and _text(about.core.name),
            "driver": about and _text(about.driverVersion),
            "pci_device": about and f"8086:{about.core.deviceId:04x}",
            "stacks": about and (about.numSubdevices or 1),
            "memory_mib": memory and memory[1],
            "error": "; ".join(errors) or None,
        }

    def _card(self, device: Any) -> Card:
        card = Card(device)

        def of(part: Part) -> list[Any]:
            return _answer(lambda: self._chosen(device, part), card.trouble) or []

        card.engines, card.memories, card.sensors = of(ENGINES), of(MEMORIES), of(SENSORS)
        for power in of(POWERS):
            domain = _answer(partial(self._domain, power), card.trouble)
            if domain in DOMAINS:
                card.powers.setdefault(domain, power)
        return card

    def _chosen(self, device: Any, part: Part) -> list[Any]:
        """The handles of those that are sampled."""

        handle = getattr(self._zes, f"zes_{part.handle}_handle_t")
        chosen = []
        for each in self._handles(f"zesDeviceEnum{part.listed}", handle, device):
            properties = self._struct(f"{part.struct}_properties")
            self._filled(f"zes{part.function}GetProperties", each, properties)
            if getattr(properties, part.key) == part.value:
                chosen.append(each)
        return chosen

    def _domain(self, power: Any) -> int:
        properties, more = self._struct("power_properties"), self._struct("power_ext_properties")
        properties.pNext = cast(pointer(more), c_void_p)
        self._filled("zesPowerGetProperties", power, properties)
        return int(more.domain)

    def _struct(self, name: str) -> Any:
        """An empty structure that says what it is."""
        struct = getattr(self._zes, f"zes_{name}_t")()
        struct.stype = getattr(self._zes, f"ZES_STRUCTURE_TYPE_{name.upper()}")
        return struct

    def _filled(self, call: str, handle: Any, struct: Any) -> Any:
        self._call(call, handle, byref(struct))
        return struct

    def _handles(self, call: str, kind: Any, *of: Any) -> list[Any]:
        count = c_uint32(0)
        self._call(call, *of, byref(count), None)
        handles = (kind * count.value)()
        self._call(call, *of, byref(count), handles)
        return [handles[number] for number in range(count.value)]

    def _call(self, call: str, *arguments: Any) -> None:
        code = getattr(self._zes, call)(*arguments)
        if code:
            raise SensorError(f"{call}: 0x{code:08x}", code)


def _answer(query: Callable[[], Any], errors: list[str]) -> Any:
    """The query's answer; None where the card has no such thing or does not tell it, which stands in `errors`."""
    try:
        return query()
    except SensorError as error:
        if error.code not in ABSENT:
            errors.append(str(error))
        return None


def _growth(before: tuple[int, int], now: tuple[int, int]) -> float | None:
    """A counter's growth by that of its time; None where one of them did not grow as it should."""
    grown, passed = now[0] - before[0], now[1] - before[1]
    return grown / passed if grown >= 0 and passed > 0 else None


def _within(highest: float, value: float | None, name: str, unit: str) -> float | None:
    """A value that can be.

    Raises:
        SensorError: it cannot.
    """
    if value is None or 0 < value <= highest:
        return value
    raise SensorError(f"a {name} of {value:g} {unit}")


def _text(value: bytes) -> str | None:
    text = value.decode("utf-8", "replace").strip()
    return None if text in ("", "unknown") else text


def describe_devices() -> list[dict[str, Any]]:
    """The cards for the node's inventory, in Level Zero's order; errors see `open_devices`."""
    return open_devices().describe()


def open_devices() -> SysmanDevices:
    """Start Sysman.

    Raises:
        FlagPerfError: there is no `pyzes`, no Level Zero, no driver, or no GPU.
    """
    try:
        import pyzes
    except ImportError as error:
        raise FlagPerfError(
            "the module pyzes is not installed",
            remedy="add the pip package pyzes to the image (or, without containers, to this Python)",
        ) from error
    except OSError as error:
        raise FlagPerfError(
            f"Level Zero's loader cannot be loaded: {error}",
            remedy="install libze1 in the image; pyzes looks for it in /usr/lib/x86_64-linux-gnu",
        ) from error
    try:
        return SysmanDevices(pyzes)
    except SensorError as error:
        raise FlagPerfError(
            f"Sysman does not start: {error}",
            remedy="see that the container gets /dev/dri, and that the host's driver is loaded",
        ) from error
