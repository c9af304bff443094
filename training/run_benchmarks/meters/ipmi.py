"""A machine's power by its BMC over IPMI, as ipmitool reads it: DCMI's power reading, else the right sensors."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
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
    "totalpower", "systotalpower", "systempower", "syspower", "serverpower", "nodepower", "chassispower",
    "totalinputpower", "systeminputpower", "sysinputpower", "inputpower", "hscinputpower", "powermeter",
    "pwrconsumption", "powerconsumption", "systemlevel", "power",
)  # fmt: skip
# A BMC names its sensors, and the names become words of a command: none may be an option.
_NAME = re.compile(r"\w[\w .()/+#&:-]{0,31}")
# What each power supply takes in; what it gives out is without its losses.
_SUPPLY = re.compile(
    r"(ps|psu|powersupply|pwrsupply)\d+((input|in)((power|pwr|watts)\d*)?|(power|pwr)(input|in)|pin)",
    re.ASCII,
)


class IpmiMeter(MeterSource):
    """The power of a machine by ipmitool: one call a sample."""

    def __init__(self, meter: Meter) -> None:
        super().__init__(meter)
        self._sensors: tuple[str, ...] | None = None  # none of them: DCMI; None: not known yet
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def close(self) -> None:
        """Remove the copy of the BMC's list of sensors."""
        if self._folder:
            self._folder.cleanup()

    def _read(self) -> float:
        if self._sensors is None:
            self._sensors = self._chosen()
        return self._sum(self._sensors) if self._sensors else self._by_dcmi()

    def _chosen(self) -> tuple[str, ...]:
        """The sensors whose sum is the power; none where DCMI tells it."""
        if not self.meter.sensors:
            try:
                self._by_dcmi()
                self._describe("DCMI power reading")
                return ()
            except UnreachableError:
                raise
            except FlagPerfError:  # it has no DCMI
                pass
        self._folder = self._folder or tempfile.TemporaryDirectory(prefix="flagperf-ipmi-")
        self._ask("sdr", "dump", str(self._cache), timeout_s=FIRST_CALL_S)
        sensors = self.meter.sensors or sensors_of_machine(
            self._ask(*self._cached, "-c", "sdr", "list", "full")
        )
        self._describe(f"{'sensor' if len(sensors) == 1 else 'sum of sensors'} {', '.join(sensors)}")
        return tuple(sensors)

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

    def _sum(self, sensors: tuple[str, ...]) -> float:
        values = values_of(self._ask(*self._cached, "-c", "sensor", "reading", *sensors))
        missing = [name for name in sensors if name not in values]
        if missing:
            raise FlagPerfError(f"{self.meter.where}: no reading of sensor {', '.join(missing)}")
        return sum(values[name] for name in sensors)

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


def sensors_of_machine(listing: str) -> tuple[str, ...]:
    """Those of the sensors of `ipmitool -c sdr list full` whose sum is the power of the whole machine.

    Raises:
        FlagPerfError: none is known to be.
    """
    rows = [line.split(",") for line in listing.splitlines()]
    watts = [row[0] for row in rows if row[2:4] == ["Watts", "ok"] and _NAME.fullmatch(row[0])]
    plain = {name: re.sub(r"[^a-z0-9]", "", name.lower()) for name in watts}
    total = next((name for known in TOTALS for name in watts if plain[name] == known), None)
    if total is not None:
        return (total,)
    supplies = tuple(name for name in watts if _SUPPLY.fullmatch(plain[name]))
    if supplies:
        return supplies
    named = ", ".join(watts[:MOST_NAMED]) or "none"
    raise FlagPerfError(
        f"no sensor is known to be of the whole machine; in watts it has: {named}",
        remedy='write which are: "sensors": ["NAME"]; several are added',
    )


def values_of(readings: str) -> Mapping[str, float]:
    """Sensor -> its value, of what `ipmitool -c sensor reading` prints; those without a number are left out."""
    values = {}
    for line in readings.splitlines():
        name, _, text = line.rpartition(",")
        if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text.strip(), re.ASCII):
            values[name] = float(text)
    return values
