"""Whether a training was watched so closely that it can be said that nothing disturbed it: REQUIRE_UNDISTURBED asks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from run_benchmarks.results.cpu_load import CPU, TASK, cpu_load, why_unread
from run_benchmarks.results.disturbances import LIMITS, MOST_DISTURBANCES, Disturbance, Kind, disturbance
from run_benchmarks.results.node_readings import NodeReadings
from run_benchmarks.results.node_telemetry import expected_readings
from run_benchmarks.results.readings import DeviceKey, Readings
from run_benchmarks.results.telemetry_result import NodeTelemetry
from utils.records import Failure, FailureClass, Stage, Verdict
from utils.telemetry.power_sources import interval_ms
from utils.telemetry.records import Scope, Telemetry

LEAST_READINGS = 10  # of fewer a single one is as large a part of the training as a load that is named
UNTOLD = "others' load on its CPUs cannot be told"
LEAST_LACK = 0.05  # of all CPUs: small loads are read too coarsely to be held against each other
# What shows whether something disturbs a chip.
OF_CHIPS = ("utilisation", "clock_mhz", "throttle", "processes")


@dataclass(frozen=True)
class Watch:
    """unwatched: what of a node cannot be told. unread: what the monitor of its chips does not read, as a note."""

    unwatched: tuple[Disturbance, ...] = ()
    unread: str = ""


def watch_of_node(rank: int, telemetry: Telemetry, node: NodeTelemetry, readings: NodeReadings) -> Watch:
    """How a node was watched. telemetry: all that its monitor told; node, readings: what it comes to."""
    findings = (*_chips(rank, telemetry, node, readings), *_cpus(rank, telemetry, node, readings))
    return Watch(findings[:MOST_DISTURBANCES], _unread(telemetry, readings))


def not_sampled(rank: int) -> Watch:
    """Of a node that left no telemetry."""
    return Watch((_sampled(rank, 0.0),))


def refused(
    named: Sequence[Disturbance], watches: Sequence[Watch], hosts: Sequence[str], earlier: str
) -> Failure | None:
    """The failure of a round that was disturbed, or not watched, where REQUIRE_UNDISTURBED says it does not count.

    Args:
        watches: by rank. earlier: what of it an earlier part trained, which another run may have watched; empty for
            nothing.
    """
    all_watches = [watches[rank] if rank < len(watches) else not_sampled(rank) for rank in range(len(hosts))]
    findings = [*named, *(each for watch in all_watches for each in watch.unwatched)]
    findings += [_unwatched(None, 0.0, earlier)] if earlier else []
    if not findings:
        return None
    notes = [each.note(hosts) for each in findings[: 2 * MOST_DISTURBANCES]]
    host = next(
        (hosts[each.node] for each in findings if each.node is not None and each.node < len(hosts)), ""
    )
    more = f"; and {len(notes) - 1} more" if len(notes) > 1 else ""
    remedy = (
        f"remove what disturbs, have sampled what was not{_longer_interval(findings)}, and run it again, or let it "
        "count without REQUIRE_UNDISTURBED in test_conf.py"
    )
    kind = FailureClass.DISTURBED
    message = f"{notes[0]}{more}"
    return Failure(Verdict.INVALID, Stage.JUDGE, kind, host, message, "\n".join(notes), remedy)


def _longer_interval(findings: Sequence[Disturbance]) -> str:
    """What may help where a source was read, but not as often as its interval says."""
    in_part = next((each for each in findings if each.kind is Kind.UNWATCHED and each.value), None)
    if in_part is None:
        return ""
    name = in_part.source if in_part.source in (CPU, TASK) else "accelerators"
    return (
        f' (if reading it takes longer than its interval, with a longer one, e.g. MONITORS = {{"{name}": 5}})'
    )


def _unwatched(rank: int | None, share: float, what: str, key: DeviceKey = ("", "")) -> Disturbance:
    return disturbance(Kind.UNWATCHED, share, what, rank, key)


def _sampled(rank: int, share: float, source: str = "", device: str = "", of: str = "") -> Disturbance:
    by = f" by {source}" if source and not device else ""
    by += f" ({of})" if of else ""
    limit = f"named below {LIMITS[Kind.UNWATCHED].value:.0%}"
    return _unwatched(rank, share, f"{share:.0%} of the training was sampled{by}, {limit}", (source, device))


def _chips(
    rank: int, telemetry: Telemetry, node: NodeTelemetry, readings: NodeReadings
) -> Iterator[Disturbance]:
    """Of each source of chips, whether it worked, often enough, and sampled each of them."""
    for name, info in {info.source: info for info in telemetry.sources}.items():
        if info.scope is not Scope.ACCELERATOR:
            continue
        if info.reason:
            yield _unwatched(rank, 0.0, f"its chips were not sampled ({why_unread(node, name)})")
            continue
        yield from _too_seldom(rank, telemetry, name, readings)
        chips = node.sources.get(name)
        expected = expected_readings(readings.training.window, interval_ms(telemetry, name))
        yield from _silent(rank, name, chips.devices if chips else (), readings, expected)


def _silent(
    rank: int, source: str, devices: Sequence[str], readings: NodeReadings, expected: int
) -> Iterator[Disturbance]:
    """The chips of which something was not read often enough that the source reads. expected: if none was missed."""
    counts, read = _counts(source, readings.training), _read(source, readings)
    if not read or not devices:
        yield _sampled(rank, 0.0, source)
        return
    silent: dict[str, tuple[float, str]] = {}
    for device in devices:
        shares = {quantity: counts.get(quantity, {}).get(device, 0) / expected for quantity in read}
        short = [quantity for quantity in read if shares[quantity] < LIMITS[Kind.UNWATCHED].value]
        if short:
            silent[device] = min(shares.values()), ", ".join(short)
    if len(silent) == len(devices) and len({*silent.values()}) == 1:
        silent = {"": silent[devices[0]]}  # one line for all of them
    for device, (share, what) in silent.items():
        yield _sampled(rank, share, source, device, what)


def _read(source: str, readings: NodeReadings) -> list[str]:
    """What a source of chips reads: what it told of any of them, be it before the ranks were started."""
    counts = {**_counts(source, readings.before), **_counts(source, readings.training)}
    return [quantity for quantity in OF_CHIPS if quantity in counts]


def _counts(source: str, readings: Readings) -> Mapping[str, Mapping[str, int]]:
    """Quantity -> device -> how often it was read; what never was is missing."""
    counts: dict[str, Counter[str]] = {}
    for (name, device), totals in readings.totals().items():
        for quantity, total in totals.items() if name == source else ():
            counts.setdefault(quantity, Counter())[device] = total.count
    for (name, device), throttling in readings.throttling().items():
        if name == source:
            counts.setdefault("throttle", Counter())[device] = throttling.count
    return counts


def _cpus(
    rank: int, telemetry: Telemetry, node: NodeTelemetry, readings: NodeReadings
) -> Iterator[Disturbance]:
    """Whether others' load can be told from the training's, and over all of it."""
    load = cpu_load(node, readings)
    if isinstance(load, str):
        yield _unwatched(rank, 0.0, f"{UNTOLD} ({load})")
        return
    if load.busy < load.own / 2 and load.own - load.busy >= LEAST_LACK:
        what = f"{CPU}: all were busy for {load.busy:.1%}, the training's control group for {load.own:.1%}"
        yield _unwatched(rank, 0.0, f"{UNTOLD} ({what})")
    # Before its first reading and behind its last one a counter has an interval that none can be missing in.
    own_ms = load.own_s * 1000 + 2 * interval_ms(telemetry, TASK)
    shares = {
        CPU: node.sources[CPU].figures["utilisation"].coverage or 0.0,
        TASK: own_ms / 1000 / readings.training.window.seconds,
    }
    for name, share in shares.items():
        yield from _too_seldom(rank, telemetry, name, readings)
        if share < LIMITS[Kind.UNWATCHED].value:
            yield _sampled(rank, share, name)


def _too_seldom(
    rank: int, telemetry: Telemetry, source: str, readings: NodeReadings
) -> Iterator[Disturbance]:
    seconds, interval_s = readings.training.window.seconds, interval_ms(telemetry, source) / 1000
    if seconds < LEAST_READINGS * interval_s:
        what = f"{source} is read once in {interval_s:g} s, and the training took {seconds:.3g} s: "
        yield _unwatched(rank, 0.0, f"{what}{LEAST_READINGS} readings are needed")


def _unread(telemetry: Telemetry, readings: NodeReadings) -> str:
    """What no chip of the node tells, though it would show what disturbs one."""
    texts = []
    for name in telemetry.with_scope(Scope.ACCELERATOR):
        read = _read(name, readings)
        missing = ", ".join(quantity for quantity in OF_CHIPS if quantity not in read)
        texts += [f"{name} does not read {missing}"] if missing else []
    return (
        f"REQUIRE_UNDISTURBED cannot see all that may disturb its chips: {'; '.join(texts)}" if texts else ""
    )
