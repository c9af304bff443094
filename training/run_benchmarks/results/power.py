"""Power and energy of a round, from the nodes' telemetry over the training's own window."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from run_benchmarks.results.clocks import NodeClock, Placement, placements
from run_benchmarks.results.telemetry_file import read_power
from run_benchmarks.unforeseen import log_traceback
from utils.errors import FlagPerfError, raised
from utils.events import Event, EventName
from utils.figures import DEFINITIONS, FINISHED, FULL_COVERAGE, LEAST_COVERAGE, Figure
from utils.numbers import counted, number_in, rate
from utils.records import Stage
from utils.telemetry.lines import TELEMETRY_FILE
from utils.telemetry.records import Measurement, Scope, Telemetry, Window
from utils.telemetry.windows import (
    POWER_SCOPES,
    average_power,
    best_power_source,
    described,
    energy_over,
    max_power,
)

MEASURED = {"energy": energy_over, "avg_power": average_power, "max_power": max_power}
NAMES = (*MEASURED, "samples_per_joule")
# TRAIN_START's and TRAIN_END's times may differ so much from the time trained: their lines are written just after.
CLOCK_SLACK_S, CLOCK_SLACK = 1.0, 0.01
MOST_NAMES = 8  # of nodes of which the same is said
# Of a node's telemetry so much may be no record: with more, nobody can say what is missing.
MOST_WRONG = 0.01
# How `source` names the scope, as `described` writes it.
_SCOPE = re.compile(rf"\(({'|'.join(scope.value for scope in POWER_SCOPES)})[:)]")


def power_figures(
    folders: Sequence[Path], events: Sequence[Event], clocks: Sequence[NodeClock] = ()
) -> tuple[dict[str, Figure], list[str]]:
    """`energy`, `avg_power`, `max_power` (mean over the nodes) and `samples_per_joule`; and what was left out.

    Args:
        events: rank 0's, by the clock of its node. clocks: of the nodes, by rank.
    """
    notes: list[str] = []
    silent: dict[str, str] = {}
    placed = list(zip(folders, placements(clocks, len(folders)), strict=True))
    figures = _figures(placed, events, notes, silent)
    caveats = [f"not sampled: {text}" for text in _by_text(silent)]
    return {
        name: replace(each, caveat="; ".join(filter(None, (each.caveat, *caveats))))
        for name, each in figures.items()
    }, notes


def _figures(
    placed: Sequence[tuple[Path, Placement]],
    events: Sequence[Event],
    notes: list[str],
    silent: dict[str, str],
) -> dict[str, Figure]:
    """The figures; to `notes` goes what was left out of telemetry, to `silent` node -> why it has none of its chips."""
    window = training_window(events)
    if isinstance(window, str):
        return no_power(window)
    nodes = []
    for folder, placement in placed:
        node = _node(folder, placement, window, notes, silent)
        if isinstance(node, str):
            return no_power(node if len(placed) == 1 else f"{folder.name}: {node}")
        nodes.append(node)
    if len({node.scope for node in nodes}) > 1:
        scopes = "; ".join(_by_text({node.name: node.scope.value for node in nodes}))
        return no_power(
            f"the nodes measure different parts of a machine, of which there is no mean: {scopes}"
        )
    doubt = _clock_doubt(window, events)
    figures = {name: _mean(name, nodes, doubt) for name in MEASURED}
    return {**figures, "samples_per_joule": _per_joule(figures["energy"], len(nodes), events)}


def training_window(events: Sequence[Event]) -> Window | str:
    """TRAIN_START..TRAIN_END in wall-clock time, or the reason why there is none."""
    at = {event.name: event.time_ms for event in events}
    start, end = at.get(EventName.TRAIN_START.value), at.get(EventName.TRAIN_END.value)
    if not start or not end:
        return "TRAIN_START or TRAIN_END was not reported"
    return Window(start, end) if end > start else "TRAIN_END does not come after TRAIN_START"


def _clock_doubt(window: Window, events: Sequence[Event]) -> str:
    """Why the window is not what was trained in, or nothing: a wall clock may be set, the monotonic one may not."""
    finished = next((event.value for event in events if event.name == EventName.FINISHED), {})
    trained = number_in(finished, "raw_train_time")
    if trained is None or abs(window.seconds - trained) <= CLOCK_SLACK_S + CLOCK_SLACK * trained:
        return ""
    return f"the wall clock says {window.seconds:.4g} s of training, the monotonic clock {trained:.4g} s"


@dataclass(frozen=True)
class _Node:
    """What one node measured. scope: of which part of it the figures speak; what: by which source and devices.

    doubt: what of its telemetry was left out, or nothing.
    """

    name: str
    scope: Scope
    what: str
    measured: Mapping[str, Measurement]
    doubt: str = ""


def _node(
    folder: Path, placement: Placement, window: Window, notes: list[str], silent: dict[str, str]
) -> _Node | str:
    """The node's figures, or the reason why there are none; `notes` and `silent` see `_figures`."""
    try:
        telemetry = read_power(folder / TELEMETRY_FILE, placement)
    except FlagPerfError as error:
        return str(error).splitlines()[0]
    notes += [telemetry.doubt] if telemetry.wrong else []
    if telemetry.wrong > MOST_WRONG * telemetry.lines:
        return telemetry.doubt
    silent |= _silent_accelerators(folder.name, telemetry)
    source = best_power_source(telemetry)
    info = telemetry.info(source) if source else None
    if source is None or info is None:
        return _why_none(telemetry)
    measured = {name: over(telemetry, window, source) for name, over in MEASURED.items()}
    return _Node(folder.name, info.scope, described(telemetry, source), measured, telemetry.doubt)


def _silent_accelerators(node: str, telemetry: Telemetry) -> dict[str, str]:
    """What a reader must know also where another source has the power: it is not that of the chips."""
    latest = {info.source: info for info in telemetry.sources if info.scope is Scope.ACCELERATOR}
    reasons = [f"{info.source}: {info.reason}" for info in latest.values() if info.reason]
    return {node: "; ".join(reasons)} if reasons else {}


def _why_none(telemetry: Telemetry) -> str:
    """Each source's reason, those first that would have come nearest to the whole machine."""
    reasons = {
        (POWER_SCOPES.index(info.scope), info.source): info.reason
        for info in telemetry.sources
        if info.reason and info.scope in POWER_SCOPES
    }
    return "; ".join(f"{key[1]}: {reasons[key]}" for key in sorted(reasons)) or "no power source on the node"


def _mean(name: str, nodes: Sequence[_Node], doubt: str) -> Figure:
    """The mean over the nodes, each of which has a source of the same scope; `doubt`: of its window, or empty."""
    definition = DEFINITIONS[name]
    measured = {node.name: node.measured[name] for node in nodes}
    missing = {node: each.reason for node, each in measured.items() if each.value is None}
    if missing:
        return definition.figure(None, _joined(missing, len(nodes)))
    covered = min(each.coverage for each in measured.values())
    if covered < LEAST_COVERAGE:
        return replace(definition.figure(None, _sampled(measured)), coverage=covered)
    origins = {node: _origin(each) for node, each in measured.items()}
    mean_of = f"mean of {len(nodes)} nodes; " if len(nodes) > 1 else ""
    mean = sum(each.value or 0.0 for each in measured.values()) / len(nodes)
    figure = definition.figure(mean, f"{mean_of}{_joined(origins, len(nodes))}")
    caveats = [_sampled(measured)] if covered < FULL_COVERAGE else []
    if len({node.what for node in nodes}) > 1:
        caveats.append("the nodes do not measure by the same source and devices")
    caveats += [doubt] if doubt else []
    caveats += [f"{node.name}: {node.doubt}" for node in nodes if node.doubt][:1]
    scope = nodes[0].scope.value  # that of all of them
    return replace(figure, coverage=covered, caveat="; ".join(caveats), scope=scope)


def _sampled(measured: Mapping[str, Measurement]) -> str:
    """How much of the window was, at the least, and on which nodes it was not all."""
    least = min(each.coverage for each in measured.values())
    short = [node for node, each in measured.items() if each.coverage < FULL_COVERAGE]
    where = f" on {_some(short)}" if len(measured) > 1 else ""
    return f"only {100 * least:.3g} % of the window was sampled{where}"


def _origin(measured: Measurement) -> str:
    return f"{measured.source} ({measured.reason})" if measured.reason else measured.source


def _joined(texts: Mapping[str, str], nodes: int) -> str:
    """Each node's text, those with the same together; of the only node there is it need not be said which it is."""
    return "; ".join(_by_text(texts)) if nodes > 1 else next(iter(texts.values()))


def _by_text(texts: Mapping[str, str]) -> list[str]:
    """`node, node: text`, in the nodes' order."""
    nodes: dict[str, list[str]] = {}
    for node, text in texts.items():
        nodes.setdefault(text, []).append(node)
    return [f"{_some(names)}: {text}" for text, names in nodes.items()]


def _some(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _per_joule(energy: Figure, nodes: int, events: Sequence[Event]) -> Figure:
    """All samples by all energy: of a part of the window it would flatter."""
    definition = DEFINITIONS["samples_per_joule"]
    if energy.value is None or energy.coverage is None:
        return replace(definition.figure(None, energy.source), coverage=energy.coverage)
    if energy.coverage < FULL_COVERAGE:
        reason = f"{energy.caveat}, but the samples are of all of it"
        return replace(definition.figure(None, reason), coverage=energy.coverage)
    finished = next((event.value for event in events if event.name == EventName.FINISHED), {})
    samples = number_in(finished, "num_trained_samples")
    if samples is None:
        return definition.figure(None, f"num_trained_samples is not in the {FINISHED}")
    figure = definition.figure(
        rate(samples, energy.value * nodes), f"samples / energy of {counted(nodes, 'node')}"
    )
    return replace(figure, coverage=energy.coverage, caveat=energy.caveat, scope=energy.scope)


def scope_in(source: str) -> str:
    """The scope that a figure's `source` names, for results that do not say it; empty for none, or several."""
    scopes = {*_SCOPE.findall(source)}
    return scopes.pop() if len(scopes) == 1 else ""


def no_power(reason: str) -> dict[str, Figure]:
    """None of them, and why."""
    return {name: DEFINITIONS[name].figure(None, reason) for name in NAMES}


def power_figures_or_why(
    folders: Sequence[Path], events: Sequence[Event], clocks: Sequence[NodeClock] = ()
) -> tuple[dict[str, Figure], list[str]]:
    """The figures of power and notes on what they are made of; whatever telemetry holds, no verdict changes by it."""
    try:
        return power_figures(folders, events, clocks)
    except Exception as error:
        log_traceback(Stage.JUDGE, error)
        reason = f"the nodes' telemetry broke its reader: {raised(error)}"
        return no_power(reason), [reason]
