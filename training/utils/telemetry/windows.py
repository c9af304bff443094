"""Figures over a window of telemetry: energy and power.

Every function takes the telemetry of one node, a window and the name of a source, and returns a
Measurement over all devices of that source. Energy comes from the hardware's own counter where it has
a sound one, else from power integrated by the trapezoid rule. Nothing is extrapolated: what was not
sampled is left out, and `coverage` says how much that was. A device whose power another one carries is counted
with that one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from utils.numbers import counted
from utils.telemetry.plausible import LATE_MS, PLAUSIBLE_W, clear_ms, growth_mj
from utils.telemetry.records import Measurement, Scope, Telemetry, Window
from utils.telemetry.series import ENERGY, POWER
from utils.telemetry.spans import longest_ms, spans
from utils.text_files import shortened

DEFAULT_INTERVAL_S = 1.0
# A device that is on always draws power, and counters are updated at least every 100 ms.
FROZEN_AFTER_MS = 5_000
MOST_NAMED, LONGEST_NAMES = 64, 300  # of a source's devices, and characters
# From the whole machine to the least part of it.
POWER_SCOPES = (Scope.MACHINE, Scope.ACCELERATOR, Scope.PACKAGE)
WITH_POWER = frozenset({*POWER_SCOPES, Scope.CHASSIS})  # also where it is nobody's own

COUNTER = "hardware energy counter"
INTEGRATED = "power integrated by the trapezoid rule"

if TYPE_CHECKING:
    from utils.telemetry.series import Point, Series


@dataclass(frozen=True)
class DeviceEnergy:
    """A device's energy in J over the covered part of some windows; `value` None has its reason."""

    value: float | None
    covered_ms: float = 0.0
    method: str = ""
    reason: str = ""


def energy_over(telemetry: Telemetry, window: Window, source: str) -> Measurement:
    """Energy in J over the covered part of the window, summed over the source's devices."""
    return energy_and_power(telemetry, (window,), source, device_energies(telemetry, (window,), source))[0]


def average_power(telemetry: Telemetry, window: Window, source: str) -> Measurement:
    """Mean power in W, summed over the source's devices: energy over the time it was measured in."""
    return energy_and_power(telemetry, (window,), source, device_energies(telemetry, (window,), source))[1]


def device_energies(
    telemetry: Telemetry, windows: Sequence[Window], source: str
) -> Mapping[str, DeviceEnergy]:
    """What each device of the source took in these windows together, which do not overlap."""
    hole, most_w = longest_ms(interval_ms(telemetry, source), windows), _most_w(telemetry, source)
    return {
        device: _together([_energy(_near(series, window, hole), window, hole, most_w) for window in windows])
        for device, series in metered_series(telemetry, source).items()
    }


def energy_and_power(
    telemetry: Telemetry, windows: Sequence[Window], source: str, energies: Mapping[str, DeviceEnergy]
) -> tuple[Measurement, Measurement]:
    """Energy in J and mean power in W of all devices of the source together, by what each of them took.

    Power is energy over the time it was measured in.
    """
    texts = [f"{_label(source, name)}: {each.reason}" for name, each in energies.items() if each.reason]
    reasons = "; ".join(texts[:MOST_NAMED])
    measured = [(each, each.value) for each in energies.values() if each.value is not None]
    if not measured or len(measured) < len(energies):
        missing = _missing(telemetry, source, reasons)
        return missing, missing
    methods = " and ".join(sorted({each.method for each, _ in measured}))
    coverage = min(each.covered_ms for each, _ in measured) / (sum(each.seconds for each in windows) * 1000)
    joules = sum(value for _, value in measured)
    watts = sum(value / (each.covered_ms / 1000) for each, value in measured)
    text = f"{described(telemetry, source)}: {methods}"
    return Measurement(joules, text, coverage, reasons), Measurement(watts, text, coverage, reasons)


def counted_and_integrated(
    telemetry: Telemetry, window: Window, source: str
) -> list[tuple[DeviceEnergy, DeviceEnergy]]:
    """The energy of each device of the source, by its counter and by its power."""
    hole, most_w = longest_ms(interval_ms(telemetry, source), (window,)), _most_w(telemetry, source)
    devices = metered_series(telemetry, source).values()
    return [(_counter(each, window, hole, most_w), _integral(each, window, hole)) for each in devices]


def _together(parts: Sequence[DeviceEnergy]) -> DeviceEnergy:
    """The sum of those parts that were measured."""
    measured = [(part, part.value) for part in parts if part.value is not None]
    reasons = dict.fromkeys(part.reason for part in parts if part.reason)
    if not measured:
        return DeviceEnergy(None, reason="; ".join(list(reasons)[:1]))
    return DeviceEnergy(
        sum(value for _, value in measured),
        sum(part.covered_ms for part, _ in measured),
        " and ".join(sorted({part.method for part, _ in measured})),
        "; ".join(dict.fromkeys(part.reason for part, _ in measured if part.reason)),
    )


def max_power(telemetry: Telemetry, window: Window, source: str) -> Measurement:
    """Largest power in W of all the source's devices together, among the moments when all were read."""
    sums = power_sums(telemetry, source)
    inside = [watts for time_ms, watts in sums.items() if window.start_ms <= time_ms <= window.end_ms]
    if not inside:
        return _missing(telemetry, source, "no sample in the window has this value")
    hole = longest_ms(interval_ms(telemetry, source), (window,))
    read = spans(((time_ms, 0.0) for time_ms in sorted(sums)), window, hole)
    coverage = sum(span.inside_ms for span in read) / (window.seconds * 1000)
    return Measurement(max(inside), f"{described(telemetry, source)}: largest sample of power", coverage)


def power_sums(telemetry: Telemetry, source: str) -> dict[int, float]:
    """Time in ms -> power in W of all the source's devices together, at the moments when all were read."""
    sums: dict[int, float] | None = None
    for series in metered_series(telemetry, source).values():
        watts = dict(series.points(POWER))
        sums = watts if sums is None else {at: sums[at] + watts[at] for at in sums if at in watts}
    return sums or {}


def metered(carriers: Mapping[str, str | None]) -> list[str]:
    """Of a source's devices, each with who carries its power, those whose power no other one of them carries."""
    carrying = {device for device, carrier in carriers.items() if carrier is None}
    return [device for device, carrier in carriers.items() if carrier not in carrying]


def metered_series(telemetry: Telemetry, source: str) -> Mapping[str, Series]:
    """The devices of the source by whose readings its power is reckoned, with these."""
    devices = telemetry.series(source)
    names = metered({device: series.carrier for device, series in devices.items()})
    return {device: devices[device] for device in names}


def best_power_source(telemetry: Telemetry) -> str | None:
    """The source nearest to the whole machine: machine, else accelerators, else packages.

    Of several that have told any power one that the controller reads, for no task can write that, else the quickest.
    """
    for scope in POWER_SCOPES:
        if sources := [name for name in telemetry.with_scope(scope) if name not in telemetry.without_power]:
            return min(
                sources, key=lambda name: (name not in telemetry.of_controller, interval_ms(telemetry, name))
            )
    return None


def described(telemetry: Telemetry, source: str) -> str:
    """What a source measures: its name, its scope, and its devices, which are none for a host as a whole."""
    info = telemetry.info(source)
    names = list(filter(None, telemetry.series(source)))
    more = [f"{len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else []
    devices = shortened(", ".join([*names[:MOST_NAMED], *more]), LONGEST_NAMES)
    scope = info.scope.value if info else "unknown scope"
    return f"{source} ({scope}: {devices})" if devices else f"{source} ({scope})"


def _missing(telemetry: Telemetry, source: str, reason: str) -> Measurement:
    info = telemetry.info(source)
    if info is not None and info.reason:
        reason = info.reason
    elif not telemetry.series(source):
        reason = f"{telemetry.path} holds no samples of {source}"
    elif source in telemetry.left_out:
        reason = f"{reason}; {telemetry.left_out[source]}"
    return Measurement(None, described(telemetry, source), 0.0, reason)


def _near(series: Series, window: Window, hole_ms: float) -> Series:
    """All readings that have a say in what lies in the window."""
    return series.between(window.start_ms, window.end_ms, hole_ms)


def _energy(series: Series, window: Window, hole_ms: float, most_w: float) -> DeviceEnergy:
    by_counter = _counter(series, window, hole_ms, most_w)
    if by_counter.value is not None and not by_counter.reason:
        return by_counter
    integrated = _integral(series, window, hole_ms)
    if by_counter.value is not None and by_counter.covered_ms > integrated.covered_ms:
        return replace(by_counter, reason=f"some of the energy counter was not used: {by_counter.reason}")
    if not series.has_read(ENERGY):  # a device without a counter: nothing to explain
        return integrated
    return DeviceEnergy(
        integrated.value,
        integrated.covered_ms,
        integrated.method,
        f"the energy counter was not used: {by_counter.reason}",
    )


def _counter(series: Series, window: Window, hole_ms: float, most_w: float) -> DeviceEnergy:
    """Energy by the device's counter: differences of readings, in J. What is no growth is left out, and told."""
    wraps_at = series.energy_range_mj
    points = _well_read(series.points(ENERGY), wraps_at, most_w)
    joules = covered = unchanged_ms = 0.0
    leaps, first_leap = 0, ""
    for span in spans(points, window, hole_ms, trusted_ms=clear_ms(wraps_at, most_w)):
        growth = growth_mj(span.first, span.last, span.length_ms, wraps_at, most_w)
        if growth is None:
            leaps += 1
            first_leap = first_leap or f"from {span.first:.0f} to {span.last:.0f} mJ"
            continue
        unchanged_ms = 0.0 if growth else unchanged_ms + span.inside_ms
        if unchanged_ms > FROZEN_AFTER_MS:
            still_s = unchanged_ms / 1000
            return DeviceEnergy(None, reason=f"it stood still at {span.last:.0f} mJ for {still_s:.1f} s")
        joules += growth / 1000 * span.inside_ms / span.length_ms
        covered += span.inside_ms
    leapt = f"it was reset or misread {counted(leaps, 'time')}, first {first_leap}" if leaps else ""
    if not covered:
        return DeviceEnergy(None, reason=leapt or _why_empty(series, ENERGY))
    if not joules and covered > LATE_MS:  # in less it may have been updated at no reading
        return DeviceEnergy(None, reason=leapt or "it stood still")
    return DeviceEnergy(joules, covered, COUNTER, leapt)


def _well_read(points: Iterator[Point], range_mj: float | None, most_w: float) -> Iterator[Point]:
    """The readings of a counter, but for each that a neighbour contradicts while its two neighbours agree."""

    def grows(first: Point, last: Point) -> bool:
        return growth_mj(first[1], last[1], last[0] - first[0], range_mj, most_w) is not None

    before = next(points, None)
    if before is None:
        return
    yield before
    point = next(points, None)
    for after in points:
        assert point is not None  # noqa: S101 - for mypy: another one came after it
        if (grows(before, point) and grows(point, after)) or not grows(before, after):
            yield point
            before = point
        point = after
    if point is not None:
        yield point


def _integral(series: Series, window: Window, hole_ms: float) -> DeviceEnergy:
    """Energy by the sampled power, integrated over the covered part of the window, in J."""
    joules = covered = 0.0
    for span in spans(series.points(POWER), window, hole_ms):
        joules += span.mean_inside * span.inside_ms / 1000
        covered += span.inside_ms
    if not covered:
        return DeviceEnergy(None, reason=_why_empty(series, POWER))
    return DeviceEnergy(joules, covered, INTEGRATED)


def _why_empty(series: Series, name: str) -> str:
    return series.error or f"no two readings of {name} around the window are near enough to each other"


def interval_ms(telemetry: Telemetry, source: str) -> float:
    """How often the source is to be read."""
    info = telemetry.info(source)
    return (info.interval_s if info else DEFAULT_INTERVAL_S) * 1000


def _most_w(telemetry: Telemetry, source: str) -> float:
    info = telemetry.info(source)
    return PLAUSIBLE_W[info.scope if info else Scope.MACHINE][1]


def _label(source: str, device: str) -> str:
    return f"{source} {device}" if device else source
