"""Whether a training was watched so closely that it can be said that nothing disturbed it: REQUIRE_UNDISTURBED asks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from run_benchmarks.results.cpu_load import CPU, TASK, cpu_load, why_unread
from run_benchmarks.results.disturbances import LIMITS, MOST_DISTURBANCES, Disturbance, Kind, disturbance
from run_benchmarks.results.node_readings import NodeReadings
from run_benchmarks.results.readings import DeviceKey
from run_benchmarks.results.telemetry_result import NodeTelemetry, SourceTelemetry
from utils.records import Failure, FailureClass, Stage, Verdict
from utils.telemetry.power_sources import interval_ms
from utils.telemetry.records import Scope, Telemetry

LEAST_READINGS = 10  # of fewer a single one is as large a part of the training as a load that is named
UNTOLD = "others' load on its CPUs cannot be told"
OF_CHIPS = ("utilisation", "avg_clock", "throttled")  # figures that show whether a chip was sampled


@dataclass(frozen=True)
class Watch:
    """unwatched: what of a node cannot be told. unread: what the monitor of its chips does not read, as a note."""

    unwatched: tuple[Disturbance, ...] = ()
    unread: str = ""


def watch_of_node(rank: int, telemetry: Telemetry, node: NodeTelemetry, readings: NodeReadings) -> Watch:
    """How a node was watched. telemetry: all that its monitor told; node, readings: what it comes to."""
    found = (*_chips(rank, telemetry, node, readings), *_cpus(rank, telemetry, node, readings))
    return Watch(found[:MOST_DISTURBANCES], _unread(telemetry, node, readings))


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
    found = [*named, *(each for watch in all_watches for each in watch.unwatched)]
    found += [_unwatched(None, 0.0, earlier)] if earlier else []
    if not found:
        return None
    notes = [each.note(hosts) for each in found[: 2 * MOST_DISTURBANCES]]
    host = next((hosts[each.node] for each in found if each.node is not None and each.node < len(hosts)), "")
    more = f"; and {len(notes) - 1} more" if len(notes) > 1 else ""
    remedy = (
        "remove what disturbs, have sampled what was not, and run it again, or let it count without "
        "REQUIRE_UNDISTURBED in test_conf.py"
    )
    kind = FailureClass.DISTURBED
    message = f"{notes[0]}{more}"
    return Failure(Verdict.INVALID, Stage.JUDGE, kind, host, message, "\n".join(notes), remedy)


def _unwatched(rank: int | None, share: float, what: str, key: DeviceKey = ("", "")) -> Disturbance:
    return disturbance(Kind.UNWATCHED, share, what, rank, key)


def _sampled(rank: int, share: float, source: str = "", device: str = "") -> Disturbance:
    by = f" by {source}" if source and not device else ""
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
        share = _share_of_chips(chips)
        if share < LIMITS[Kind.UNWATCHED].value:
            yield _sampled(rank, share, name)
        elif chips:
            yield from (_sampled(rank, 0.0, name, device) for device in _silent(chips))


def _share_of_chips(chips: SourceTelemetry | None) -> float:
    """The part of the training in which that was read that is read least of all that they tell."""
    if chips is None or "utilisation" not in chips.figures:
        return 0.0
    return min(chips.figures[name].coverage or 0.0 for name in OF_CHIPS if name in chips.figures)


def _silent(chips: SourceTelemetry) -> Iterator[str]:
    """Those of several of which none of it was read: the coverage of a figure is without them."""
    columns = [chips.of_devices[name].values for name in OF_CHIPS if name in chips.of_devices]
    for place, device in enumerate(chips.devices if columns else ()):
        if all(values[place] is None for values in columns):
            yield device


def _cpus(
    rank: int, telemetry: Telemetry, node: NodeTelemetry, readings: NodeReadings
) -> Iterator[Disturbance]:
    """Whether others' load can be told from the training's, and over all of it."""
    load = cpu_load(node, readings)
    if isinstance(load, str):
        yield _unwatched(rank, 0.0, f"{UNTOLD} ({load})")
        return
    if load.busy < load.own / 2:
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


def _unread(telemetry: Telemetry, node: NodeTelemetry, readings: NodeReadings) -> str:
    """What no chip of the node tells, though it would show what disturbs one."""
    totals = readings.training.totals()
    texts = []
    for name in telemetry.with_scope(Scope.ACCELERATOR):
        figures = node.sources[name].figures if name in node.sources else {}
        read = {
            "throttle": "throttled" in figures,
            "clock_mhz": "avg_clock" in figures,
            "processes": any("processes" in total for key, total in totals.items() if key[0] == name),
        }
        missing = ", ".join(quantity for quantity, is_read in read.items() if not is_read)
        texts += [f"{name} does not read {missing}"] if missing else []
    return (
        f"REQUIRE_UNDISTURBED cannot see all that may disturb its chips: {'; '.join(texts)}" if texts else ""
    )
