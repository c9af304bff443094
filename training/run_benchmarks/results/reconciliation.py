"""Whether sources of a node that measure the same power agree: a figure that stands alone may be wrong unseen."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from run_benchmarks.results.telemetry_result import Reconciliation
from utils.telemetry.records import Scope, Telemetry, Window
from utils.telemetry.windows import counted_and_integrated, device_energies, energy_and_power

# Power that is averaged over a second lags behind: over a shorter time that alone may be some percent.
LEAST_S = 30.0
LEAST_COVERAGE = 0.9
WHOLE_AND_PARTS = (
    0.05,
    "meters of power supplies are within some percent; the whole has fans and losses besides",
)
TWO_METERS = (0.1, "each meter is within some 5 %, and they may average over other times")
COUNTER_AND_POWER = (0.05, "vendors give +-5 % for a reading of power")


def reconciliations(node: int, telemetry: Telemetry, training: Window) -> Iterator[Reconciliation]:
    """Every comparison that the node's sources allow."""
    machines = telemetry.with_scope(Scope.MACHINE)
    accelerators, packages = (telemetry.with_scope(each) for each in (Scope.ACCELERATOR, Scope.PACKAGE))
    parts = [*accelerators, *packages]
    for machine in machines:
        if parts:
            what = f"{machine} >= {' + '.join(parts)}"
            yield _compared(
                node, what, telemetry, training, ([machine], parts), WHOLE_AND_PARTS, is_least=True
            )
    for first, second in itertools.pairwise(machines):
        what = f"{first} = {second}"
        yield _compared(node, what, telemetry, training, ([first], [second]), TWO_METERS)
    for source in accelerators:  # a package's power is made of its counter
        both = counted_and_integrated(telemetry, training, source)
        if both is None:
            continue
        covered_s = min(each.covered_ms for each in both) / 1000
        watts = [(each.value or 0.0) / (each.covered_ms / 1000) for each in both]
        what = f"{source}: energy counter = integral of power"
        is_enough = covered_s >= max(LEAST_S, LEAST_COVERAGE * training.seconds)
        yield _verdict(node, what, watts[0], watts[1], is_enough, COUNTER_AND_POWER)


def _compared(
    node: int,
    what: str,
    telemetry: Telemetry,
    training: Window,
    sources: tuple[Sequence[str], Sequence[str]],
    tolerance: tuple[float, str],
    *,
    is_least: bool = False,
) -> Reconciliation:
    """The mean powers of two sets of sources over the time in which all of them were read."""
    common = _common_window(telemetry, training, [*sources[0], *sources[1]])
    if common is None:
        return _verdict(node, what, None, None, False, tolerance)
    sums: list[float | None] = []
    least = 1.0
    for names in sources:
        powers = [
            energy_and_power(telemetry, (common,), name, device_energies(telemetry, (common,), name))[1]
            for name in names
        ]
        values = [each.value for each in powers if each.value is not None]
        sums.append(sum(values) if len(values) == len(powers) else None)
        least = min(least, *(each.coverage for each in powers))
    is_enough = least >= LEAST_COVERAGE and common.seconds >= LEAST_S
    return _verdict(node, what, sums[0], sums[1], is_enough, tolerance, is_least=is_least)


def _common_window(telemetry: Telemetry, training: Window, sources: Sequence[str]) -> Window | None:
    """Where all devices of all sources lie between their first and last readings."""
    start, end = training.start_ms, training.end_ms
    for source in sources:
        devices = telemetry.series(source)
        if not devices or not all(series.times_ms for series in devices.values()):
            return None
        start = max(start, *(series.times_ms[0] for series in devices.values()))
        end = min(end, *(series.times_ms[-1] for series in devices.values()))
    return Window(start, end) if end > start else None


def _verdict(
    node: int,
    what: str,
    first: float | None,
    second: float | None,
    is_enough: bool,
    tolerance: tuple[float, str],
    *,
    is_least: bool = False,
) -> Reconciliation:
    """is_least: the first has to be the larger one, by whatever."""
    part, reason = tolerance
    if first is None or second is None or not is_enough:
        reason = (
            f"not compared: less than {LEAST_S:g} s, or {LEAST_COVERAGE:.0%} of it, in which all were read"
        )
        return Reconciliation(
            node=node, what=what, first=first, second=second, agrees=None, tolerance=part, reason=reason
        )
    short = second - first if is_least else abs(second - first)
    agrees = short <= part * max(first, second)
    return Reconciliation(
        node=node, what=what, first=first, second=second, agrees=agrees, tolerance=part, reason=reason
    )


def warning(each: Reconciliation) -> str:
    """What a note of the round says of a node whose sources do not agree."""
    return (
        f"{each.what} does not hold: {each.first:.4g} W against {each.second:.4g} W while training, "
        f"of which {each.tolerance:.0%} would be allowed ({each.reason})"
    )
