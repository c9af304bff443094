"""A machine's power by its BMC over IPMI, as ipmitool reads it: DCMI's power reading, else the right sensors."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from run_benchmarks.meters.base import MeterSource, UnreachableError
from run_benchmarks.plan.meters import Meter
from utils.errors import FlagPerfError
from utils.monitors.tool import run_tool

TOOL = "ipmitool"
# A packet that is lost is sent again after so many seconds, so many times; then the tool gives up by itself.
PACKET_S, RETRIES = 2, 1
CALL_S, FIRST_CALL_S = 15.0, 60.0  # the first asks for every sensor: a real BMC has hundreds
NO_SESSION = (
    "Unable to establish"  # which the tool says of a BMC that is not there and of a wrong password alike
)
MOST_NAMED = 20
REMEDY = "install it on this machine: apt-get install ipmitool"
_DCMI = re.compile(r"^[ \t]*Instantaneous power reading:[ \t]+(\d{1,6}) Watts", re.MULTILINE | re.ASCII)
_DCMI_IS_ON = re.compile(r"^[ \t]*Power reading state is:[ \t]+activated", re.MULTILINE)
# The names that makers give the sensor of the whole machine's power, without what is no letter or digit, the surest
# first.
TOTALS = (
    "totalpower", "systotalpower", "systempower", "syspower", "pwrsystem", "serverpower", "nodepower", "chassispower",
    "totalinputpower", "systeminputpower", "sysinputpower", "inputpower", "hscinputpower", "powermeter",
    "pwrconsumption", "pwconsumption", "powerconsumption", "systemlevel", "power",
)  # fmt: skip
# Those of them that may as well be one power supply's: of an entity that is one they are no total.
_NOT_OF_A_SUPPLY = (
    "inputpower",
    "hscinputpower",
    "powermeter",
    "pwrconsumption",
    "pwconsumption",
    "powerconsumption",
    "power",
)
_SUPPLY_ENTITY = "10."  # IPMI 2.0, table 43-13
ALIKE = "ask the BMC by Redfish: ipmitool reads only the first sensor of a name"
# Of a full sensor record (IPMI 2.0, table 43-1), in bytes: what stands before it, and where its name's length stands.
_FULL_SENSOR, _HEADER, _NAME_AT = 0x01, 5, 42
# A BMC names its sensors, and the names become words of a command: none may be an option.
_NAME = re.compile(r"\w[\w .()/+#&:-]{0,31}")
# What `ipmitool sdr type` says of a power supply that is in its bay (IPMI 2.0, table 42-3, type 08h, offset 0).
PRESENT = "Presence detected"
# What each power supply takes in; what it gives out is without its losses.
_SUPPLY = re.compile(
    r"(ps|psu|powersupply|pwrsupply)\d+((input|in)((power|pwr|watts)\d*)?|(power|pwr)(input|in)|pin)",
    re.ASCII,
)


@dataclass(frozen=True)
class Sensor:
    """A line of ipmitool's `sdr elist`. entity: the part of the machine that it is of, 10.2 is the second supply."""

    name: str
    status: str
    entity: str
    reading: str

    @property
    def plain(self) -> str:
        """Its name without what is no letter or digit."""
        return re.sub(r"[^a-z0-9]", "", self.name.lower())

    @property
    def is_silent(self) -> bool:
        """It has no reading; one that is beyond a threshold (nc, cr) has."""
        return self.status == "ns"

    @property
    def kind(self) -> str:
        """Its name without a number behind it."""
        return self.plain.rstrip("0123456789")

    @property
    def is_a_supplys(self) -> bool:
        """Whether it is a power supply's by its entity, and may be by its name."""
        return self.kind in _NOT_OF_A_SUPPLY and self.entity.startswith(_SUPPLY_ENTITY)

    def is_total(self, name: str) -> bool:
        """Whether it is the one of this name of the whole machine."""
        return self.plain == name and not self.is_a_supplys


@dataclass(frozen=True)
class Chosen:
    """The sensors whose sum is the power; none: DCMI tells it. of_empty_bays: added once there is a supply in them."""

    sensors: tuple[str, ...] = ()
    of_empty_bays: tuple[str, ...] = ()


class IpmiMeter(MeterSource):
    """The power of a machine by ipmitool: one call a sample."""

    def __init__(self, meter: Meter) -> None:
        super().__init__(meter)
        self._way: Chosen | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def close(self) -> None:
        """Remove the copy of the BMC's list of sensors."""
        if self._folder:
            self._folder.cleanup()

    def _read(self) -> float:
        if self._way is None:
            self._way = self._chosen()
        return self._sum(self._way) if self._way.sensors else self._by_dcmi()

    def _chosen(self) -> Chosen:
        if not self.meter.sensors:
            try:
                self._by_dcmi()
                self._describe("DCMI power reading")
                return Chosen()
            except UnreachableError:
                raise
            except FlagPerfError:  # it has no DCMI
                pass
        self._folder = self._folder or tempfile.TemporaryDirectory(prefix="flagperf-ipmi-")
        self._ask("sdr", "dump", str(self._cache), timeout_s=FIRST_CALL_S)
        chosen = self._named() if self.meter.sensors else self._by_names()
        count = len(chosen.sensors)
        self._describe(f"{'sensor' if count == 1 else 'sum of sensors'} {', '.join(chosen.sensors)}")
        return chosen

    def _named(self) -> Chosen:
        alike = sorted(_alike(names_in(self._cache.read_bytes())) & set(self.meter.sensors))
        if alike:
            message = f"{self.meter.where} has several sensors of one name: {_in_words(alike)}"
            raise FlagPerfError(message, remedy=ALIKE)
        return Chosen(self.meter.sensors)

    def _by_names(self) -> Chosen:
        listing = self._ask(*self._cached, "sdr", "elist", "full", timeout_s=FIRST_CALL_S)
        return sensors_of_machine(listing, self._states_of_supplies)

    def _states_of_supplies(self) -> str:
        try:
            return self._ask(*self._cached, "sdr", "type", "Power Supply")
        except UnreachableError:
            raise
        except FlagPerfError:  # nothing is known of them
            return ""

    @property
    def _cache(self) -> Path:
        assert self._folder is not None  # noqa: S101 - for mypy
        return Path(self._folder.name, "sdr")

    @property
    def _cached(self) -> tuple[str, str]:
        return "-S", str(self._cache)

    def _by_dcmi(self) -> float:
        text = self._ask("dcmi", "power", "reading")
        watts = _DCMI.search(text)
        if not watts or not _DCMI_IS_ON.search(text):
            raise FlagPerfError(f"{self.meter.where}: its DCMI power reading is not active")
        return float(watts[1])

    def _sum(self, chosen: Chosen) -> float:
        names = (*chosen.sensors, *chosen.of_empty_bays)
        values = values_of(self._ask(*self._cached, "-c", "sensor", "reading", *names))
        missing = [name for name in chosen.sensors if name not in values]
        if missing:
            raise FlagPerfError(f"{self.meter.where}: no reading of sensor {', '.join(missing)}")
        return sum(values[name] for name in names if name in values)

    def _ask(self, *words: str, timeout_s: float = CALL_S) -> str:
        """What ipmitool prints. The password goes there by the environment: nobody else sees that of a process."""
        meter = self.meter
        suite = () if meter.cipher_suite is None else ("-C", str(meter.cipher_suite))
        argv = (
            TOOL, "-I", "lanplus", "-H", meter.host, "-p", str(meter.port), "-U", meter.user, "-E", *suite,
            "-N", str(PACKET_S), "-R", str(RETRIES), *words,
        )  # fmt: skip
        try:
            return run_tool(argv, timeout_s, {"IPMITOOL_PASSWORD": meter.password()}, REMEDY)
        except FlagPerfError as error:
            remedy = error.remedy or (
                "see that this machine reaches it (UDP), that user and password are right and the user may log in over "
                "the network, and try cipher_suite 3 or 17"
            )
            kind = UnreachableError if NO_SESSION in error.message else FlagPerfError
            raise kind(f"{meter.where}: {error.message}", remedy=remedy) from error


def sensors_of_machine(listing: str, states_of_supplies: Callable[[], str]) -> Chosen:
    """Those of the sensors of `ipmitool sdr elist full` whose sum is the power of the whole machine.

    Args:
        states_of_supplies: asks for `ipmitool sdr type "Power Supply"`, where it matters.

    Raises:
        FlagPerfError: none is known to be; or a power supply that may carry a part of the load tells nothing.
    """
    sensors = [each for each in _sensors_in(listing) if _NAME.fullmatch(each.name)]
    watts = [each for each in sensors if not each.is_silent and each.reading.endswith(" Watts")]
    alike = _alike(_names(sensors))
    # one of several that a number tells apart may be a part of what they measure together
    count = Counter(
        each.kind for each in sensors if (each.is_silent or each in watts) and not each.is_a_supplys
    )
    single = [each for each in watts if count[each.plain] <= 1 and each.name not in alike]
    total = next((each.name for known in TOTALS for each in single if each.is_total(known)), None)
    if total is not None:
        return Chosen((total,))
    supplies = [each for each in watts if _SUPPLY.fullmatch(each.plain)]
    if supplies and not alike.intersection(_names(supplies)):
        silent = _silent_siblings(supplies, sensors)
        if silent:
            _check_that_absent(silent, supplies, states_of_supplies())
        return Chosen(_names(supplies), _names(silent))
    several = alike.intersection(_names(watts))
    but_several = f"; several are called {_in_words(sorted(several))}" if several else ""
    raise FlagPerfError(
        "no sensor is known to be of the whole machine; in watts it has: "
        f"{_in_words(list(dict.fromkeys(_names(watts)))) or 'none'}{but_several}",
        remedy='write which are: "sensors": ["NAME"]; several are added'
        + (f"; or {ALIKE}" if several else ""),
    )


def _sensors_in(listing: str) -> list[Sensor]:
    rows = [[field.strip() for field in line.split("|")] for line in listing.splitlines()]
    return [Sensor(row[0], row[2], row[3], row[4]) for row in rows if len(row) == 5]


def _names(sensors: Sequence[Sensor]) -> tuple[str, ...]:
    return tuple(each.name for each in sensors)


def _in_words(names: Sequence[str]) -> str:
    return ", ".join(names[:MOST_NAMED])


def _alike(names: Iterable[str]) -> set[str]:
    """Those that several sensors have."""
    return {name for name, count in Counter(names).items() if count > 1}


def names_in(records: bytes) -> list[str]:
    """The names of the sensors with a reading in what `ipmitool sdr dump` writes."""
    names = []
    while len(records) >= _HEADER:
        kind, length = records[3:_HEADER]
        body, records = records[_HEADER : _HEADER + length], records[_HEADER + length :]
        if kind == _FULL_SENSOR and len(body) > _NAME_AT:
            end = _NAME_AT + 1 + (body[_NAME_AT] & 0x1F)
            names.append(body[_NAME_AT + 1 : end].decode("ascii", "replace"))
    return names


def _silent_siblings(supplies: Sequence[Sensor], sensors: Sequence[Sensor]) -> list[Sensor]:
    """Sensors without a reading, and so without a unit, that have another's name but for the number."""
    alike = {re.sub(r"\d+", "#", each.plain) for each in supplies}
    return [each for each in sensors if each.is_silent and re.sub(r"\d+", "#", each.plain) in alike]


def _check_that_absent(silent: Sequence[Sensor], telling: Sequence[Sensor], states: str) -> None:
    """FlagPerfError if not all of these are of empty bays, by a BMC that says which other supplies are in theirs."""
    stated = [each for each in _sensors_in(states) if not each.is_silent]
    present = {each.entity for each in stated if PRESENT in each.reading}
    empty = {each.entity for each in stated} - present
    if {each.entity for each in telling} <= present and {each.entity for each in silent} <= empty:
        return
    quiet, others = (_in_words(_names(each)) for each in (silent, telling))
    raise FlagPerfError(
        f"sensor {quiet} tells nothing: what {others} tells may be a part of the machine's power",
        remedy='if it is all of it, write that: "sensors": ["NAME"]; else see why the other power supply tells nothing',
    )


def values_of(readings: str) -> Mapping[str, float]:
    """Sensor -> its value, of what `ipmitool -c sensor reading` prints; those without a number are left out."""
    values = {}
    for line in readings.splitlines():
        name, _, text = line.rpartition(",")
        if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text.strip(), re.ASCII):
            values[name] = float(text)
    return values
