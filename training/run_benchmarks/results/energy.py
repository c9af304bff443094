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

from run_benchmarks.results.counters import Counter, counter_of
from run_benchmarks.results.spans import longest_ms, spans
from utils.telemetry.plausible import PLAUSIBLE_W
from utils.telemetry.power_sources import MOST_NAMED, described, interval_ms, metered_series
from utils.telemetry.records import Measurement, Scope, Telemetry, Window
from utils.telemetry.series import ENERGY, POWER

# A counter is the better meter, but for a window of which it knows so much less than power does.
NEARLY = 0.99

COUNTER = "hardware energy counter"
INTEGRATED = "power integrated by the trapezoid rule"
NOT_NEAR = "no two readings of {} around the window are near enough to each other"

if TYPE_CHECKING:
    from utils.telemetry.series import Series


@dataclass(frozen=True)
class DeviceEnergy:
    """A device's energy in J over the covered part of some windows; `value` None has its reason.

    doubt: why the value may be wrong, or nothing. unsure_j: by so much it is if the load changed just at the windows'
    ends.
    """

    value: float | None
    covered_ms: float = 0.0
    method: str = ""
    reason: str = ""
    doubt: str = ""
    unsure_j: float = 0.0


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
    interval, scope = interval_ms(telemetry, source), _scope(telemetry, source)

    def taken(series: Series) -> DeviceEnergy:
        counter = counter_of(series, PLAUSIBLE_W[scope][1])
        # power of a package is made of its counter, and has all of its faults
        power = None if scope is Scope.PACKAGE and counter.readings else series
        return _together([_energy(power, counter, each, longest_ms(interval, each)) for each in windows])

    return {device: taken(series) for device, series in metered_series(telemetry, source).items()}


def energy_and_power(
    telemetry: Telemetry, windows: Sequence[Window], source: str, energies: Mapping[str, DeviceEnergy]
) -> tuple[Measurement, Measurement]:
    """Energy in J and mean power in W of all devices of the source together, by what each of them took.

    Power is energy over the time it was measured in.
    """
    texts = [f"{_label(source, name)}: {each.reason}" for name, each in energies.items() if each.reason]
    reasons = "; ".join(texts[:MOST_NAMED])
    doubt = next(
        (f"{_label(source, name)}: {each.doubt}" for name, each in energies.items() if each.doubt), ""
    )
    measured = [(each, each.value) for each in energies.values() if each.value is not None]
    if not measured or len(measured) < len(energies):
        missing = _missing(telemetry, source, reasons)
        return missing, missing
    methods = " and ".join(sorted({each.method for each, _ in measured}))
    covered = min(each.covered_ms for each, _ in measured) / (sum(each.seconds for each in windows) * 1000)
    coverage = min(1.0, covered)  # of many windows the sums are rounded
    joules = sum(value for _, value in measured)
    watts = sum(value / (each.covered_ms / 1000) for each, value in measured)
    text = f"{described(telemetry, source)}: {methods}"
    unsure_j = sum(each.unsure_j for each, _ in measured)
    unsure_w = sum(each.unsure_j / (each.covered_ms / 1000) for each, _ in measured)
    energy = Measurement(joules, text, coverage, reasons, doubt, unsure_j)
    return energy, replace(energy, value=watts, unsure=unsure_w)


def counted_and_integrated(
    telemetry: Telemetry, window: Window, source: str
) -> list[tuple[DeviceEnergy, DeviceEnergy]]:
    """The energy of each device of the source, by its counter, where that has no faults, and by its power."""
    hole, scope = longest_ms(interval_ms(telemetry, source), window), _scope(telemetry, source)

    def by_counter(series: Series) -> DeviceEnergy:
        counted = _counted(counter_of(series, PLAUSIBLE_W[scope][1]), window, hole)
        return replace(counted, value=None) if counted.reason else counted

    devices = metered_series(telemetry, source).values()
    return [(by_counter(each), _integral(each, window, hole)) for each in devices]


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
        "; ".join(dict.fromkeys(part.doubt for part, _ in measured if part.doubt)),
        sum(part.unsure_j for part, _ in measured),
    )


def max_power(telemetry: Telemetry, window: Window, source: str) -> Measurement:
    """Largest power in W of all the source's devices together, among the moments when all were read."""
    sums = power_sums(telemetry, source)
    inside = [watts for time_ms, watts in sums.items() if window.start_ms <= time_ms <= window.end_ms]
    if not inside:
        return _missing(telemetry, source, "no sample in the window has this value")
    hole = longest_ms(interval_ms(telemetry, source), window)
    read = spans(((time_ms, 0.0) for time_ms in sorted(sums)), window, hole)
    coverage = sum(span.inside_ms for span in read) / (window.seconds * 1000)
    # that of packages is by their counters, with what makes these doubtful
    doubt = (
        energy_over(telemetry, window, source).reason if _scope(telemetry, source) is Scope.PACKAGE else ""
    )
    text = f"{described(telemetry, source)}: largest sample of power"
    return Measurement(max(inside), text, coverage, doubt, doubt)


def power_sums(telemetry: Telemetry, source: str) -> dict[int, float]:
    """Time in ms -> power in W of all the source's devices together, at the moments when all were read."""
    sums: dict[int, float] | None = None
    for _, watts in powers(telemetry, source):
        sums = watts if sums is None else {at: sums[at] + watts[at] for at in sums if at in watts}
    return sums or {}


def powers(telemetry: Telemetry, source: str) -> Iterator[tuple[str, dict[int, float]]]:
    """Each device, and time in ms -> power in W.

    That of a package is by its counter: what its monitor tells is made of it, with all its faults.
    """
    scope = _scope(telemetry, source)
    most_w = PLAUSIBLE_W[scope][1]
    for device, series in metered_series(telemetry, source).items():
        counter = counter_of(series, most_w) if scope is Scope.PACKAGE else None
        yield device, counter.powers(most_w) if counter and counter.readings else dict(series.points(POWER))


def _missing(telemetry: Telemetry, source: str, reason: str) -> Measurement:
    info = telemetry.info(source)
    if info is not None and info.reason:
        reason = info.reason
    elif not telemetry.series(source):
        reason = f"{telemetry.path} holds no samples of {source}"
    elif source in telemetry.left_out:
        reason = f"{reason}; {telemetry.left_out[source]}"
    return Measurement(None, described(telemetry, source), 0.0, reason)


def _energy(power: Series | None, counter: Counter, window: Window, hole_ms: float) -> DeviceEnergy:
    """By the counter, where that covers as much of the window as power does, or nearly; if it has faults, more.

    power: the device, where it tells power of its own.
    """
    by_counter = _counted(counter, window, hole_ms)
    has_faults = by_counter.value is not None and bool(by_counter.reason)
    if by_counter.covered_ms >= NEARLY * window.seconds * 1000 and not has_faults:
        return by_counter
    integrated = _integral(power, window, hole_ms) if power else DeviceEnergy(None)
    if not counter.readings:  # a device without a counter: nothing to explain
        return integrated
    least_ms = integrated.covered_ms if has_faults else NEARLY * integrated.covered_ms
    if by_counter.covered_ms > least_ms:
        doubt = f"some of the energy counter was not used: {by_counter.reason}" if has_faults else ""
        return replace(by_counter, reason=doubt, doubt=doubt)
    why = by_counter.reason or "power was read in more of the time"
    return replace(integrated, reason=f"the energy counter was not used: {why}")


def _counted(counter: Counter, window: Window, hole_ms: float) -> DeviceEnergy:
    """Energy by the device's counter, in J; of one with faults what is left, and why that is not all."""
    growth = counter.over(window, hole_ms)
    if growth.covered_ms:
        return DeviceEnergy(
            growth.joules, growth.covered_ms, COUNTER, growth.faults, unsure_j=growth.unsure_j
        )
    why = counter.why_nothing(window, NOT_NEAR.format(ENERGY))
    return DeviceEnergy(None, reason=growth.faults or why)


def _integral(series: Series, window: Window, hole_ms: float) -> DeviceEnergy:
    """Energy by the sampled power, integrated over the covered part of the window, in J."""
    joules = covered = unsure = 0.0
    near = series.between(window.start_ms, window.end_ms, hole_ms)
    for span in spans(near.points(POWER), window, hole_ms):
        joules += span.mean_inside * span.inside_ms / 1000
        covered += span.inside_ms
        unsure += span.unsure * span.inside_ms / 1000
    if not covered:
        return DeviceEnergy(None, reason=series.error or NOT_NEAR.format(POWER))
    return DeviceEnergy(joules, covered, INTEGRATED, unsure_j=unsure)


def _scope(telemetry: Telemetry, source: str) -> Scope:
    info = telemetry.info(source)
    return info.scope if info and info.scope in PLAUSIBLE_W else Scope.MACHINE


def _label(source: str, device: str) -> str:
    return f"{source} {device}" if device else source
