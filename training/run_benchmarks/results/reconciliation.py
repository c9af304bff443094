"""Whether sources of a node that measure the same power agree: a figure that stands alone may be wrong unseen."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from run_benchmarks.results.energy import (
    DeviceEnergy,
    counted_and_integrated,
    device_energies,
    energy_and_power,
)
from run_benchmarks.results.idle import idle_window
from run_benchmarks.results.telemetry_result import MOST_SOURCES, Reconciliation
from utils.telemetry.power_sources import POWER_SCOPES, metered_series
from utils.telemetry.records import Measurement, Telemetry, Window
from utils.telemetry.series import ENERGY, POWER

# Power that is averaged over a second lags behind: over a shorter time that alone may be some percent.
LEAST_S = 30.0
LEAST_COVERAGE = 0.9
WHOLE_AND_PARTS = (
    0.05,
    "meters of power supplies are within some percent; the whole has fans and losses besides",
)
TWO_METERS = (0.1, "each meter is within some 5 %, and they may average over other times")
# A meter may average over a minute, so that a rise is seen in full behind the first one alone.
# What else was in it while idle (a host that was busy, fans after other work) may have gone: so only a small part of
# what its parts rise by tells that it does not follow them.
OF_THE_RISE, RISES, RISE_W, SETTLED_MS = 0.75, 0.1, 20.0, 60_000
WHY_RISES = (
    f"three quarters of the parts' rise, or a tenth of the machine's power and {RISE_W:g} W: a meter that repeats old "
    "readings does not rise, and one whose mean is of a long time may tell of earlier work in place of idle"
)
COUNTER_AND_POWER = (0.05, "vendors give +-5 % for a reading of power")
NOT_COMPARED = f"not compared: less than {LEAST_S:g} s, or {LEAST_COVERAGE:.0%} of it, in which all were read"
NOT_ALL_READ = "not all devices were read all of the time: the values are of what was read"


@dataclass(frozen=True)
class _Claim:
    """What has to hold on a node: `first` is as much as `second` together, or, with `is_least`, as much or more.

    tolerance: the part of the larger one by which it may be short, and why.
    """

    node: int
    what: str
    first: str
    second: Sequence[str]
    tolerance: tuple[float, str]
    is_least: bool = False

    @property
    def sources(self) -> tuple[str, ...]:
        """All that it is of."""
        return tuple(dict.fromkeys((self.first, *self.second)))


def reconciliations(
    node: int, telemetry: Telemetry, training: Window, ranks_start_ms: float | None = None
) -> Iterator[Reconciliation]:
    """Every comparison that the node's sources allow. ranks_start_ms: until when it is idle, None if nothing tells."""
    machines, accelerators, packages = (telemetry.with_scope(each)[:MOST_SOURCES] for each in POWER_SCOPES)
    parts = [*accelerators, *packages]
    both = {
        source: _idle_and_training(source, telemetry, training, ranks_start_ms)
        for source in (*machines, *parts)
        if machines and parts
    }
    powers = {source: each for source, each in both.items() if each}
    for machine in machines:
        if parts:
            what = f"{machine} >= {' + '.join(parts)}"
            yield _with_parts(
                _Claim(node, what, machine, parts, WHOLE_AND_PARTS, is_least=True), telemetry, training
            )
            yield from _risen(node, machine, parts, powers)
    for first, second in itertools.pairwise(machines):
        claim = _Claim(node, f"{first} = {second}", first, [second], TWO_METERS)
        yield _over(claim, telemetry, _time(telemetry, training, claim, is_of_all=True))
    for source in accelerators:  # a package's power is made of its counter
        pairs = counted_and_integrated(telemetry, training, source)
        if any(_are_read(pair) for pair in pairs):
            what = f"{source}: energy counter = integral of power"
            yield _counted(_Claim(node, what, source, [source], COUNTER_AND_POWER), pairs)


def _with_parts(claim: _Claim, telemetry: Telemetry, training: Window) -> Reconciliation:
    """The machine and its parts, over the time in which all of them were read, else over that of any of them.

    A part that is not read takes 0 W or more, so that the machine takes no less than the others all the same.
    """
    of_all, of_any = (_time(telemetry, training, claim, is_of_all=each) for each in (True, False))
    together = _over(claim, telemetry, of_all)
    if together.agrees is False or of_any is None or (together.agrees and of_any == of_all):
        return together
    of_some = _of_those_read(claim, telemetry, of_any)
    return together if together.agrees and of_some.agrees is None else of_some


def _risen(
    node: int, machine: str, parts: Sequence[str], powers: Mapping[str, tuple[float, float]]
) -> Iterator[Reconciliation]:
    """A machine rises from idle with those of its parts that tell both. powers: idle and in training, in W."""
    compared = [part for part in parts if part in powers]
    if machine not in powers or not compared:
        return
    rises = {source: training - idle for source, (idle, training) in powers.items()}
    first, second = rises[machine], sum(rises[part] for part in compared)
    if second < RISE_W:
        return
    allowed_w = max(OF_THE_RISE * second, RISES * powers[machine][1] + RISE_W)
    what = f"rise of {machine} from idle >= {' + '.join(compared)}"
    tolerance = (allowed_w / max(first, second), WHY_RISES)
    claim = _Claim(node, what, machine, compared, tolerance, is_least=True)
    yield _verdict(claim, first, second, is_enough=True, is_of_all=len(compared) == len(parts))


def _idle_and_training(
    source: str, telemetry: Telemetry, training: Window, ranks_start_ms: float | None
) -> tuple[float, float] | None:
    """A source's mean power before the ranks, and in the training behind the time in which meters settle."""
    idle = idle_window(telemetry, ranks_start_ms, source)
    settled = replace(training, start_ms=training.start_ms + SETTLED_MS)
    if isinstance(idle, str) or settled.seconds < LEAST_S:
        return None
    before, then = (_power(telemetry, time, source) for time in (idle, settled))
    if before.value is None or then.value is None or min(before.coverage, then.coverage) < LEAST_COVERAGE:
        return None
    return before.value, then.value


def _over(claim: _Claim, telemetry: Telemetry, time: Window | None) -> Reconciliation:
    """The mean powers of both over a time in which all was read."""
    if time is None:
        return _verdict(claim, None, None)
    first, *second = (_power(telemetry, time, source) for source in (claim.first, *claim.second))
    values = [each.value for each in second if each.value is not None]
    is_enough = min(first.coverage, *(each.coverage for each in second)) >= LEAST_COVERAGE
    watts = sum(values) if len(values) == len(second) else None
    return _verdict(claim, first.value, watts, is_enough=is_enough and time.seconds >= LEAST_S)


def _of_those_read(claim: _Claim, telemetry: Telemetry, time: Window) -> Reconciliation:
    """The machine against what was read of its parts, which is no more than all of them took."""
    first = _power(telemetry, time, claim.first)
    devices = (
        each for source in claim.second for each in device_energies(telemetry, (time,), source).values()
    )
    joules = [each.value for each in devices if each.value is not None]
    watts = sum(joules) / time.seconds if joules else None
    is_enough = first.coverage >= LEAST_COVERAGE and time.seconds >= LEAST_S
    return _verdict(claim, first.value, watts, is_enough=is_enough, is_of_all=False)


def _counted(claim: _Claim, pairs: Sequence[tuple[DeviceEnergy, DeviceEnergy]]) -> Reconciliation:
    """Mean power by the counters and by the readings, of those devices that have both over the same time."""
    enough = [pair for pair in pairs if _are_read(pair) and _is_same_time(pair)]
    compared = enough or [pair for pair in pairs if _are_read(pair)]
    first, second = (
        sum((each.value or 0.0) / (each.covered_ms / 1000) for each in of_all)
        for of_all in zip(*compared, strict=True)
    )
    return _verdict(claim, first, second, is_enough=bool(enough), is_of_all=len(enough) == len(pairs))


def _are_read(pair: tuple[DeviceEnergy, DeviceEnergy]) -> bool:
    return all(each.value is not None for each in pair)


def _is_same_time(pair: tuple[DeviceEnergy, DeviceEnergy]) -> bool:
    """Whether both were read for long enough, and one for about as long as the other."""
    shorter, longer = sorted(each.covered_ms / 1000 for each in pair)
    return shorter >= max(LEAST_S, LEAST_COVERAGE * longer)


def _power(telemetry: Telemetry, time: Window, source: str) -> Measurement:
    return energy_and_power(telemetry, (time,), source, device_energies(telemetry, (time,), source))[1]


def _time(telemetry: Telemetry, training: Window, claim: _Claim, *, is_of_all: bool) -> Window | None:
    """While training, from the first to the last reading of all devices of the claim, or of any of its second ones."""
    read = [
        [series.read_from_to((POWER, ENERGY)) for series in metered_series(telemetry, source).values()]
        for source in claim.sources
    ]
    if is_of_all and not all(spans and all(spans) for spans in read):
        return None
    first, second = ([span for span in spans if span] for spans in (read[0], itertools.chain(*read[1:])))
    if not first or not second:
        return None
    earliest, latest = (max, min) if is_of_all else (min, max)
    start = max(training.start_ms, *(each[0] for each in first), earliest(each[0] for each in second))
    end = min(training.end_ms, *(each[1] for each in first), latest(each[1] for each in second))
    return Window(start, end) if end > start else None


def _verdict(
    claim: _Claim,
    first: float | None,
    second: float | None,
    *,
    is_enough: bool = False,
    is_of_all: bool = True,
) -> Reconciliation:
    """is_of_all: what was not read of some devices would not change it; else it can be refuted, and not borne out."""
    part, reason = claim.tolerance
    agrees: bool | None = None
    if first is None or second is None or not is_enough:
        reason = NOT_COMPARED
    else:
        short = second - first if claim.is_least else abs(second - first)
        agrees = short <= part * max(first, second)
        if not is_of_all:
            agrees, reason = (None, NOT_ALL_READ) if agrees else (False, f"{reason}; {NOT_ALL_READ}")
    return Reconciliation(
        node=claim.node,
        what=claim.what,
        first=first,
        second=second,
        agrees=agrees,
        tolerance=part,
        reason=reason,
        sources=claim.sources,
    )


def warning(each: Reconciliation) -> str:
    """What a note of the round says of a node whose sources do not agree."""
    return (
        f"{each.what} does not hold: {each.first:.4g} W against {each.second:.4g} W, "
        f"of which {each.tolerance:.0%} would be allowed ({each.reason})"
    )
