"""What a round's telemetry comes to: its figures, and what stands in `result.json` under `telemetry`.

Pure: of the nodes' folders and the training's events. A node is read once, and let go before the next one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

from run_benchmarks.plan.energy_factors import NO_FACTORS, EnergyFactors
from run_benchmarks.results.clock_doubts import (
    BY_THE_CLOCK,
    CLOCK_WAS_SET,
    WatchedClock,
    clock_was_set,
    watched_clock,
)
from run_benchmarks.results.clocks import NodeClock, Placement, Shift, placements
from run_benchmarks.results.device_figures import NAMES as OF_DEVICES
from run_benchmarks.results.device_figures import device_figures
from run_benchmarks.results.disturbances import (
    MOST_DISTURBANCES,
    Disturbance,
    disturbances_of_all,
    disturbances_of_node,
)
from run_benchmarks.results.estimates import NAMES as ESTIMATES
from run_benchmarks.results.estimates import estimates
from run_benchmarks.results.gaps import gap_doubts
from run_benchmarks.results.node_readings import NodeReadings
from run_benchmarks.results.node_telemetry import WANTED, Cut, node_telemetry
from run_benchmarks.results.phases import Phase, PhaseEvents
from run_benchmarks.results.power import (
    NAMES as OF_POWER,
)
from run_benchmarks.results.power import (
    NodePower,
    clock_doubt,
    no_power,
    node_power,
    power_figures,
    shared_power,
    silent_accelerators,
    some_of,
    training_window,
)
from run_benchmarks.results.reconciliation import reconciliations, warning
from run_benchmarks.results.stuck_meters import standing_still
from run_benchmarks.results.telemetry_file import read_power
from run_benchmarks.results.telemetry_result import (
    MOST_ALL_DEVICES,
    MOST_COMPARED,
    MOST_NODES,
    NodeTelemetry,
    Reconciliation,
    RoundTelemetry,
)
from run_benchmarks.results.unwatched import Watch, not_sampled, watch_of_node
from run_benchmarks.unforeseen import log_traceback
from utils.errors import FlagPerfError, raised
from utils.events import Event
from utils.figures import DEFINITIONS, Figure
from utils.records import Stage
from utils.telemetry.lines import TELEMETRY_FILE
from utils.telemetry.records import Telemetry, Window

NAMES = (*OF_POWER, *OF_DEVICES, *ESTIMATES)
# Of a node's telemetry so much may be no record: with more, nobody can say what is missing.
MOST_WRONG = 0.01


@dataclass(frozen=True)
class TelemetryOutcome:
    """figures: those of NAMES. notes: what a reader must know. telemetry: None without a training to cut it by.

    disturbances: what may have made the training slower. clock: that of rank 0's node. watches: of the nodes, by rank.
    unread: what the monitors of chips do not read that would show what disturbs them.
    """

    figures: dict[str, Figure]
    notes: list[str] = field(default_factory=list)
    telemetry: RoundTelemetry | None = None
    disturbances: tuple[Disturbance, ...] = ()
    clock: WatchedClock | None = None
    watches: tuple[Watch, ...] = ()
    unread: Sequence[str] = ()


@dataclass(frozen=True)
class _Node:
    """What was read of a node: see `NodePower`, `NodeTelemetry`.

    doubts: what deserves a note, each of what and as a text. contradictions: those of them in which other sources are
    against that of `power`. silent: why it has nothing of its chips, or empty.
    """

    power: NodePower | str
    telemetry: NodeTelemetry
    watch: Watch
    notes: tuple[str, ...] = ()
    doubts: tuple[tuple[str, str], ...] = ()
    contradictions: tuple[tuple[str, str], ...] = ()
    silent: str = ""
    reconciliation: tuple[Reconciliation, ...] = ()
    disturbances: tuple[Disturbance, ...] = ()
    clock: WatchedClock | None = None


def outcome_or_why(
    folders: Sequence[Path],
    events: Sequence[Event],
    phases: Mapping[int, PhaseEvents],
    clocks: Sequence[NodeClock] = (),
    met: Event | None = None,
    factors: EnergyFactors = NO_FACTORS,
) -> TelemetryOutcome:
    """As `telemetry_outcome`; whatever telemetry holds, no verdict changes by it."""
    try:
        return telemetry_outcome(folders, events, phases, clocks, met, factors)
    except Exception as error:
        log_traceback(Stage.JUDGE, error)
        reason = f"the nodes' telemetry broke its reader: {raised(error)}"
        return TelemetryOutcome(_nothing(reason), [reason])


def telemetry_outcome(
    folders: Sequence[Path],
    events: Sequence[Event],
    phases: Mapping[int, PhaseEvents],
    clocks: Sequence[NodeClock] = (),
    met: Event | None = None,
    factors: EnergyFactors = NO_FACTORS,
) -> TelemetryOutcome:
    """What the telemetry in node folders comes to.

    Args:
        folders: by node rank. events: of global rank 0.
        phases: by node rank, as its first rank tells them; a node whose rank tells nothing has those of rank 0.
        clocks: of the nodes, by rank: all is put on the time line of rank 0's events.
        met: the evaluation that met the target, if one did. factors: for the estimates.
    """
    window = training_window(events)
    if isinstance(window, str):
        return TelemetryOutcome(_nothing(window))
    nodes: dict[str, _Node] = {}
    placed = zip(folders, placements(clocks, len(folders)), strict=True)
    for rank, (folder, placement) in enumerate(placed):
        cut = _cut(window, phases.get(rank), phases.get(0), placement.own, met)
        nodes[folder.name] = _read(rank, folder, cut, placement)
    silent = {name: node.silent for name, node in nodes.items() if node.silent}
    powers = {name: node.power for name, node in nodes.items()}
    summaries = {name: node.telemetry for name, node in nodes.items()}
    contradictions = _folded({name: node.contradictions for name, node in nodes.items()})
    of_power = power_figures(powers, window, events, silent, contradictions)
    figures = {**of_power, **device_figures(summaries)}
    figures |= estimates(figures["energy"], len(folders), factors)
    notes = [note for node in nodes.values() for note in node.notes]
    kept = _of_few_devices(list(nodes.values()))
    whole = RoundTelemetry(
        nodes=tuple(node.telemetry for node in kept),
        more_nodes=len(nodes) - len(kept),
        reconciliation=tuple(each for node in kept for each in node.reconciliation)[:MOST_COMPARED],
    )
    doubts = {name: node.doubts for name, node in nodes.items()}
    of_all = disturbances_of_all(tuple(summaries.values()), phases[0].rates if 0 in phases else ())
    disturbances = (*of_all, *(each for node in nodes.values() for each in node.disturbances))
    return TelemetryOutcome(
        figures,
        [*notes, *_of_clock(nodes, clock_doubt(window, events)), *_folded(doubts)],
        whole,
        disturbances[:MOST_DISTURBANCES],
        next((node.clock for node in nodes.values()), None),
        tuple(node.watch for node in nodes.values()),
        _folded({name: [(node.watch.unread,) * 2] for name, node in nodes.items() if node.watch.unread}),
    )


def _of_clock(nodes: Mapping[str, _Node], doubt: str) -> Iterator[str]:
    """What the events of rank 0 say against its clock, unless its telemetry says when that was set."""
    first = next(iter(nodes), "")
    is_sampled = any(node.telemetry.sources for node in nodes.values())
    if doubt and is_sampled and not any(what == CLOCK_WAS_SET for what, _ in nodes[first].doubts):
        yield f"{first}: {doubt}: {BY_THE_CLOCK}"


def _of_few_devices(nodes: Sequence[_Node]) -> Sequence[_Node]:
    """The first nodes, as many as a result.json may hold."""
    devices = accumulate(
        sum(len(source.devices) for source in node.telemetry.sources.values()) for node in nodes
    )
    return nodes[: min(MOST_NODES, sum(count <= MOST_ALL_DEVICES for count in devices))]


def _folded(doubts: Mapping[str, Sequence[tuple[str, str]]]) -> list[str]:
    """What is wrong with power on a node; of those with the same, all are named and the first one's values told."""
    names: dict[str, list[str]] = {}
    firsts: dict[str, str] = {}
    for name, of_node in doubts.items():
        for what, text in of_node:
            names.setdefault(what, []).append(name)
            firsts.setdefault(what, text)
    return [
        f"{some_of(of_what)}: {firsts[what]}" + (" (of the first of them)" if len(of_what) > 1 else "")
        for what, of_what in names.items()
    ]


def _cut(
    window: Window, own: PhaseEvents | None, first: PhaseEvents | None, shift: Shift, met: Event | None
) -> Cut:
    """own: the node's, to be shifted; first: global rank 0's, for a node of a script without events there."""
    told, shift_told = (own, shift) if own and own.training() else (first, Shift())
    start = own.ranks_start_ms if own else None
    unclear = ""
    if told is None or told.training() is None:
        unclear = "no rank of the node tells of them"
    elif told.more_spells:
        unclear = f"{told.more_spells} evaluations, checkpoints or warm-ups are too many to be told apart"
    return Cut(
        training=window,
        target_ms=met.time_ms if met else None,
        phases={} if unclear or told is None else _shifted(told.windows(), shift_told),
        ranks_start_ms=None if start is None else shift(int(start)),
        unclear=unclear,
    )


def _shifted(phases: Mapping[Phase, Sequence[Window]], shift: Shift) -> dict[Phase, list[Window]]:
    return {
        phase: [Window(shift(each.start_ms), shift(each.end_ms)) for each in windows]
        for phase, windows in phases.items()
    }


def _read(rank: int, folder: Path, cut: Cut, placement: Placement) -> _Node:
    telemetry, readings, unread, doubt = _readable(folder, cut, placement)
    if unread and not telemetry.sources:
        return _Node(unread, NodeTelemetry(missing=(unread,)), not_sampled(rank), doubt)
    readings.end(telemetry)
    summary = node_telemetry(telemetry, readings.training, cut)
    compared = tuple(reconciliations(rank, telemetry, cut.training, cut.ranks_start_ms))
    power = node_power(folder.name, telemetry, cut, placement)
    shared = [f"{folder.name}: {text}" for text in filter(None, [shared_power(telemetry)])]
    wrong = {each: (each.what, warning(each)) for each in compared if each.agrees is False}
    of_power = power.source if isinstance(power, NodePower) else ""
    return _Node(
        power,
        summary,
        watch_of_node(rank, telemetry, summary, readings),
        (*doubt, *shared),
        (
            *wrong.values(),
            *clock_was_set(telemetry, of_power, cut.training, is_of_several=placement.is_of_several),
            *gap_doubts(summary),
            *_of_meters(telemetry, cut),
        ),
        tuple(text for each, text in wrong.items() if of_power in each.sources),
        silent_accelerators(telemetry),
        compared,
        tuple(disturbances_of_node(rank, summary, readings)),
        watched_clock(telemetry),
    )


def _readable(
    folder: Path, cut: Cut, placement: Placement
) -> tuple[Telemetry, NodeReadings, str, tuple[str, ...]]:
    """What was read of a node, its readings, why its own telemetry is left out, or nothing, and what to note.

    What the controller has read of the node's meter counts, whatever the node wrote beside it.
    """
    path, readings = folder / TELEMETRY_FILE, NodeReadings.over(cut.training, cut.ranks_start_ms, WANTED)
    doubt: tuple[str, ...] = ()
    try:
        telemetry = read_power(path, placement, readings.take)
        doubt = (telemetry.doubt,) if telemetry.wrong else ()
        if telemetry.node_wrong <= MOST_WRONG * telemetry.node_lines:
            return telemetry, readings, "", doubt
        unread = telemetry.doubt
    except FlagPerfError as error:
        unread = str(error).splitlines()[0]
    readings = NodeReadings.over(cut.training, cut.ranks_start_ms, WANTED)
    of_meters = read_power(path, placement, readings.take, only_meters=True)
    return of_meters, readings, unread, (unread,) if of_meters.sources else doubt


def _of_meters(telemetry: Telemetry, cut: Cut) -> Iterator[tuple[str, str]]:
    yield from standing_still(telemetry, cut.training)
    yield from ((f"left out of {source}", f"{source}: {text}") for source, text in telemetry.left_out.items())


def _nothing(reason: str) -> dict[str, Figure]:
    others = (*OF_DEVICES, *ESTIMATES)
    return {**no_power(reason), **{name: DEFINITIONS[name].figure(None, reason) for name in others}}
