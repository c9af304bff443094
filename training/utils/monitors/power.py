"""Power of the host from sysfs: the ACPI power meter (whole machine) and RAPL (processor packages only)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from utils.errors import FlagPerfError
from utils.monitors.files import kernel_text
from utils.monitors.source import Source, SourceUnavailableError
from utils.telemetry.lines import monitor_log_name, value_log
from utils.telemetry.plausible import PLAUSIBLE_W, clear_ms, growth_mj, is_plausible
from utils.telemetry.records import Sample, Scope

MICRO = 1e-6
UJ_PER_MJ = 1000
NS_PER_MS = 1_000_000
DIGITS = 1
# Power is a counter's growth divided by time. A busy host may take the processor away between two files: what was not
# read so quickly is read again, and what never was is no reading.
QUICK_MS, LONGEST_MS, TRIES = 1, 100, 3
# So much of the time between two readings may be unknown at most, and with it so much of the power; times are whole ms.
MOST_UNKNOWN, ROUNDING_MS = 0.02, 1


class MachinePower(Source):
    """Power of the whole machine by its ACPI power meter (kernel driver `acpi_power_meter`)."""

    name = "pwr"
    log_name = monitor_log_name("pwr")
    scope = Scope.MACHINE
    note = "power of the whole machine in W, by its ACPI power meter"

    def __init__(self, sys: Path = Path("/sys")) -> None:
        self._root = sys / "class" / "hwmon"

    def open(self) -> None:
        self._meters = sorted(_power_meters(self._root))
        if not self._meters:
            raise SourceUnavailableError(
                f"no source for the power of the whole machine: no ACPI power meter under {self._root}"
            )
        interval = _read(self._meters[0].with_name("power1_average_interval"), default="")
        self.note = MachinePower.note + (f", averaged over {interval} ms" if interval else "")

    def sample(self, time_ms: int) -> Sequence[Sample]:
        watts = sum(int(_read(meter)) * MICRO for meter in self._meters)
        if not is_plausible(watts, self.scope):  # some firmware shows a meter that it does not have
            raise FlagPerfError(f"the ACPI power meter says {watts:g} W, which no machine that runs draws")
        return [Sample(time_ms, self.name, power_w=watts)]

    def log_entry(self, time_ms: int, samples: Sequence[Sample]) -> str:
        return value_log(time_ms, samples[0].power_w, DIGITS)


@dataclass(frozen=True)
class _Zone:
    """A RAPL domain: its energy counter, in uJ, wraps to 0 after `range_mj`; None where it does not."""

    device: str
    counter: Path
    range_mj: float | None


class _Reading(NamedTuple):
    """All counters, in mJ, at one moment: the middle of the time, in ms, that it took to read them."""

    time_ms: int
    took_ms: float
    energies: Sequence[float]

    def is_too_near(self, before: _Reading) -> bool:
        """Whether of the time between them too much is unknown. A clock that was set back meanwhile is none of it."""
        unknown_ms = (self.took_ms + before.took_ms) / 2 + ROUNDING_MS
        return 0 <= self.time_ms - before.time_ms < unknown_ms / MOST_UNKNOWN


class RaplPower(Source):
    """Energy and power of the processor packages and, where it is counted apart, their DRAM: Intel's, and AMD's.

    They are the kernel's powercap, or for AMD's before Linux 5.8 the hwmon driver amd_energy. The counters are readable
    by root only (since Linux 5.10), and container engines hide /sys/devices/virtual/powercap: mount /sys a second time
    at another place and name that place.
    """

    name = "rapl"
    log_name = monitor_log_name("rapl")
    scope = Scope.PACKAGE
    note = "power of the processor packages and their DRAM in W, by RAPL: not the power of the whole machine"

    def __init__(self, sys: Path = Path("/sys")) -> None:
        self._root, self._hwmon = sys / "class" / "powercap", sys / "class" / "hwmon"
        self._last: dict[str, tuple[int, float]] = {}
        self._reading: _Reading | None = None

    def open(self) -> None:
        try:
            zones = list(_rapl_zones(self._root)) or _amd_zones(self._hwmon)
            self._zones = sorted(zones, key=lambda zone: zone.device)
            for zone in self._zones:
                _read(zone.counter)
        except (OSError, ValueError) as error:
            raise SourceUnavailableError(f"RAPL cannot be read: {error}; its counters need root") from error
        if not self._zones:
            raise SourceUnavailableError(
                f"no RAPL package domain under {self._root}, nor amd_energy under {self._hwmon}"
            )

    def sample(self, time_ms: int) -> Sequence[Sample]:
        """One sample a package and DRAM, all stamped with the middle of their reading.

        None so soon after the last ones (as after a late tick) that nobody could tell the power between them.

        Raises:
            FlagPerfError: when the counters were as they were read is not known.
        """
        reading = self._quickest()
        if self._reading and reading.is_too_near(self._reading):
            return []
        self._reading = reading
        zones = zip(self._zones, reading.energies, strict=True)
        return [self._sample(zone, reading.time_ms, energy_mj) for zone, energy_mj in zones]

    def _quickest(self) -> _Reading:
        tries = []
        for _ in range(TRIES):
            tries.append(self._read())
            if tries[-1].took_ms <= QUICK_MS:
                break
        quickest = min(tries, key=lambda each: each.took_ms)
        if quickest.took_ms > LONGEST_MS:
            remedy = "see what keeps the host from reading files below /sys in time"
            raise FlagPerfError(
                f"to read its counters took more than {LONGEST_MS} ms, {TRIES} times", remedy=remedy
            )
        return quickest

    def _read(self) -> _Reading:
        begin_ns = time.time_ns()
        energies = [int(_read(zone.counter)) / UJ_PER_MJ for zone in self._zones]
        took_ns = time.time_ns() - begin_ns
        return _Reading((begin_ns + took_ns // 2) // NS_PER_MS, abs(took_ns) / NS_PER_MS, energies)

    def log_entry(self, time_ms: int, samples: Sequence[Sample]) -> str:
        watts = [sample.power_w for sample in samples if sample.power_w is not None]
        if len(watts) < len(samples):  # the first reading of a counter has no power yet
            return ""
        return value_log(time_ms, sum(watts), DIGITS)

    def _sample(self, zone: _Zone, time_ms: int, energy_mj: float) -> Sample:
        watts, error = self._power(zone, (time_ms, energy_mj))
        return Sample(
            time_ms,
            self.name,
            zone.device,
            power_w=watts,
            energy_mj=energy_mj,
            energy_range_mj=zone.range_mj,
            error=error,
        )

    def _power(self, zone: _Zone, now: tuple[int, float]) -> tuple[float | None, str]:
        """In W since the last reading (time in ms, energy in mJ), or nothing, and why where that is to be told."""
        before, self._last[zone.device] = self._last.get(zone.device, now), now
        passed_ms, most_w = now[0] - before[0], PLAUSIBLE_W[self.scope][1]
        longest_ms = clear_ms(zone.range_mj, most_w)
        if passed_ms <= 0:
            return None, ""
        if passed_ms > longest_ms:
            seconds = f"{passed_ms / 1000:.3g} s between two readings, more than {longest_ms / 1000:.3g} s"
            return None, f"its counter may have wrapped unseen in {seconds}: MONITORS sets the interval"
        growth = growth_mj(before[1], now[1], passed_ms, zone.range_mj, most_w)
        if growth is None:
            del self._last[zone.device]  # nobody knows which of the two is wrong
            return None, f"its counter went from {before[1]:.0f} to {now[1]:.0f} mJ in {passed_ms} ms"
        return growth / passed_ms, ""  # mJ a ms is W


def _power_meters(root: Path) -> Iterator[Path]:
    for chip in root.glob("hwmon*"):
        # Older kernels keep the driver's files in the device's folder.
        for folder in (chip, chip / "device"):
            meter = folder / "power1_average"
            if _read(folder / "name", default="") == "power_meter" and meter.exists():
                yield meter
                break


def _rapl_zones(root: Path) -> Iterator[_Zone]:
    """Packages and their DRAM. `core` and `uncore` are parts of a package, `psys` overlaps with all."""
    for folder in root.glob("intel-rapl:*"):  # AMD's packages have this name too
        name = _read(folder / "name")
        package = _read(root / ":".join(folder.name.split(":")[:2]) / "name")
        if name.startswith("package"):
            yield _zone(folder, name)
        elif name == "dram":
            yield _zone(folder, f"{package}/{name}")


def _amd_zones(root: Path) -> Iterator[_Zone]:
    """The packages of amd_energy, which adds its counters up in 64 bits; its `Ecore` are parts of them."""
    for chip in root.glob("hwmon*"):
        if _read(chip / "name", default="") == "amd_energy":
            for label in chip.glob("energy*_label"):
                name = _read(label)
                if name.startswith("Esocket"):
                    counter = label.with_name(label.name.replace("_label", "_input"))
                    yield _Zone(name.replace("Esocket", "package-"), counter, None)


def _zone(folder: Path, device: str) -> _Zone:
    return _Zone(device, folder / "energy_uj", int(_read(folder / "max_energy_range_uj")) / UJ_PER_MJ)


def _read(path: Path, default: str | None = None) -> str:
    try:
        return kernel_text(path).strip()
    except OSError:
        if default is None:
            raise
        return default
