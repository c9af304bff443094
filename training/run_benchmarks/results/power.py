"""Power and energy of a round, from the nodes' telemetry over the training's own window."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from run_benchmarks.results.clock_doubts import steps_of, with_doubts
from run_benchmarks.results.clocks import Placement
from run_benchmarks.results.energy import device_energies, energy_and_power, max_power
from run_benchmarks.results.idle import idle_window
from run_benchmarks.results.node_telemetry import Cut, energy_above_idle
from utils.events import Event, EventName
from utils.figures import DEFINITIONS, FINISHED, FULL_COVERAGE, LEAST_COVERAGE, Figure
from utils.numbers import counted, number_in, rate
from utils.telemetry.power_sources import POWER_SCOPES, best_power_source, described
from utils.telemetry.records import Measurement, Scope, Telemetry, Window

# The mean over the nodes, of each; all but IDLE of the training's time.
IDLE = "idle_power"
MEASURED = ("energy", "avg_power", "max_power", IDLE, "energy_above_idle", "energy_to_target")
NAMES = (*MEASURED, "samples_per_joule")
# TRAIN_START's and TRAIN_END's times may differ so much from the time trained: their lines are written just after.
CLOCK_SLACK_S, CLOCK_SLACK = 1.0, 0.01
MOST_NAMES = 8  # of nodes of which the same is said
# How `source` names the scope, as `described` writes it.
_SCOPE = re.compile(rf"\(({'|'.join(scope.value for scope in POWER_SCOPES)})[:)]")


@dataclass(frozen=True)
class NodePower:
    """What one node measured, by which source. scope: of which part of it; what: the source with its devices.

    doubt: what of its telemetry was left out, or that its clock was set, or nothing.
    """

    name: str
    source: str
    scope: Scope
    what: str
    measured: Mapping[str, Measurement]
    doubt: str = ""


def power_figures(
    nodes: Mapping[str, NodePower | str],
    window: Window,
    events: Sequence[Event],
    silent: Mapping[str, str],
    contradictions: Sequence[str],
) -> dict[str, Figure]:
    """The figures of NAMES.

    Args:
        nodes: by name, in order; the reason of one that has none.
        events: rank 0's. silent: node -> why it has nothing of its chips.
        contradictions: what other sources say against those of the figures.
    """
    figures = _figures(nodes, window, events)
    caveats = [f"not sampled: {text}" for text in _by_text(silent)]

    def marked(each: Figure) -> Figure:
        doubts = contradictions if each.value is not None else ()
        return replace(each, caveat="; ".join(filter(None, (each.caveat, *doubts, *caveats))))

    return {name: marked(each) for name, each in figures.items()}


def _figures(
    nodes: Mapping[str, NodePower | str], window: Window, events: Sequence[Event]
) -> dict[str, Figure]:
    for name, node in nodes.items():
        if isinstance(node, str):
            return no_power(node if len(nodes) == 1 else f"{name}: {node}")
    powers = [node for node in nodes.values() if isinstance(node, NodePower)]
    if not powers:
        return no_power("no node left logs")
    if len({node.scope for node in powers}) > 1:
        scopes = "; ".join(_by_text({node.name: node.scope.value for node in powers}))
        return no_power(
            f"the nodes measure different parts of a machine, of which there is no mean: {scopes}"
        )
    doubt = clock_doubt(window, events)
    figures = {name: _mean(name, powers, "" if name == IDLE else doubt) for name in MEASURED}
    return {**figures, "samples_per_joule": _per_joule(figures["energy"], len(powers), events)}


def training_window(events: Sequence[Event]) -> Window | str:
    """TRAIN_START..TRAIN_END in wall-clock time, or the reason why there is none."""
    at = {event.name: event.time_ms for event in events}
    start, end = at.get(EventName.TRAIN_START.value), at.get(EventName.TRAIN_END.value)
    if not start or not end:
        return "TRAIN_START or TRAIN_END was not reported"
    return Window(start, end) if end > start else "TRAIN_END does not come after TRAIN_START"


def clock_doubt(window: Window, events: Sequence[Event]) -> str:
    """Why the window is not what was trained in, or nothing: a wall clock may be set, the monotonic one may not."""
    finished = next((event.value for event in events if event.name == EventName.FINISHED), {})
    trained = number_in(finished, "raw_train_time") or number_in(finished, "search_time")
    if trained is None or abs(window.seconds - trained) <= CLOCK_SLACK_S + CLOCK_SLACK * trained:
        return ""
    return f"the wall clock says {window.seconds:.4g} s of training, FINISHED {trained:.4g} s"


def node_power(name: str, telemetry: Telemetry, cut: Cut, placement: Placement) -> NodePower | str:
    """What the node's best source measured, or the reason why there is nothing."""
    source = best_power_source(telemetry)
    info = telemetry.info(source) if source else None
    if source is None or info is None:
        return _why_none(telemetry)
    is_of_controller = source in telemetry.of_controller
    windows = _windows(telemetry, source, cut, is_placed=is_of_controller or placement.is_of_several)
    steps = steps_of(telemetry, source)
    measured = with_doubts(_measured(telemetry, source, cut), windows, steps, cut.training)
    moved_s = (placement.controllers if is_of_controller else placement.own).moved_s
    is_set = abs(moved_s) > CLOCK_SLACK_S + CLOCK_SLACK * cut.training.seconds
    whose = "the controller's" if is_of_controller else "its"
    of_clock = f"{whose} clock moved by {moved_s:+.3g} s against rank 0's while the round went on"
    doubt = "; ".join(filter(None, (telemetry.doubt, of_clock * is_set)))
    return NodePower(name, source, info.scope, described(telemetry, source), measured, doubt)


def _windows(
    telemetry: Telemetry, source: str, cut: Cut, *, is_placed: bool
) -> dict[str, list[Window] | None]:
    """What each of MEASURED is of. is_placed: by two clocks, so that all is amiss but what is of one of them alone."""
    idle = idle_window(telemetry, cut.ranks_start_ms, source)
    before = [idle] if isinstance(idle, Window) else []
    to_target = [replace(cut.training, end_ms=cut.target_ms)] if cut.target_ms is not None else []
    of_training: dict[str, list[Window]] = {
        "energy": [cut.training],
        "avg_power": [cut.training],
        "max_power": [cut.training],
        "energy_above_idle": [*before, cut.training],
        "energy_to_target": to_target,
    }
    return {IDLE: before, **{name: None if is_placed else each for name, each in of_training.items()}}


def _measured(telemetry: Telemetry, source: str, cut: Cut) -> dict[str, Measurement]:
    """Each of MEASURED."""

    def over(window: Window) -> tuple[Measurement, Measurement]:
        return energy_and_power(telemetry, (window,), source, device_energies(telemetry, (window,), source))

    energy, power = over(cut.training)
    window = idle_window(telemetry, cut.ranks_start_ms, source)
    idle = _nothing(window) if isinstance(window, str) else over(window)[1]
    to_target = _nothing("no evaluation met the target")
    if cut.target_ms is not None and cut.target_ms > cut.training.start_ms:
        to_target = over(Window(cut.training.start_ms, cut.target_ms))[0]
    return {
        "energy": energy,
        "avg_power": power,
        "max_power": max_power(telemetry, cut.training, source),
        IDLE: idle,
        "energy_above_idle": _above_idle(energy, power, idle),
        "energy_to_target": to_target,
    }


def _nothing(reason: str) -> Measurement:
    return Measurement(None, "", 0.0, reason)


def _above_idle(energy: Measurement, power: Measurement, idle: Measurement) -> Measurement:
    if energy.value is None:
        return energy
    if idle.value is None:
        return _nothing(f"no {IDLE}: {idle.reason}")
    if idle.coverage < LEAST_COVERAGE:
        return _nothing(f"no {IDLE}: only {100 * idle.coverage:.3g} % of its time was sampled")
    above = energy_above_idle(energy, power, idle.value)
    doubt = "; ".join(dict.fromkeys(filter(None, (energy.doubt, idle.doubt))))
    if above is None or not power.value:
        return _nothing("avg_power is 0")
    unsure = energy.unsure + idle.unsure * energy.value / power.value
    return replace(energy, value=above, doubt=doubt, unsure=unsure)


def silent_accelerators(telemetry: Telemetry) -> str:
    """What a reader must know also where another source has the power: it is not that of the chips; or nothing."""
    latest = {info.source: info for info in telemetry.sources if info.scope is Scope.ACCELERATOR}
    is_of_packages = best_power_source(telemetry) in telemetry.with_scope(Scope.PACKAGE)
    without_power = telemetry.without_power if is_of_packages else {}
    reasons = {info.source: info.reason or without_power.get(info.source) for info in latest.values()}
    return "; ".join(f"{source}: {reason}" for source, reason in reasons.items() if reason)


def shared_power(telemetry: Telemetry) -> str:
    """What is measured of a chassis that the node shares: it is in no figure of a node; or nothing."""
    latest = {info.source: info for info in telemetry.sources if info.scope is Scope.CHASSIS}
    of_none = "no part of it is ascribed to a node"
    return "; ".join(f"{info.source}: {info.note}; {of_none}" for info in latest.values() if not info.reason)


def _why_none(telemetry: Telemetry) -> str:
    """Each source's reason, those first that would have come nearest to the whole machine."""
    reasons = {
        (POWER_SCOPES.index(info.scope), info.source): reason
        for info in telemetry.sources
        if (reason := info.reason or telemetry.without_power.get(info.source)) and info.scope in POWER_SCOPES
    }
    texts = [f"{key[1]}: {reasons[key]}" for key in sorted(reasons)]
    return "; ".join(filter(None, (shared_power(telemetry), *texts))) or "no power source on the node"


def _mean(name: str, nodes: Sequence[NodePower], doubt: str) -> Figure:
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
    caveats += [f"{node}: {each.doubt}" for node, each in measured.items() if each.doubt][:1]
    at_ends = {node: text for node, each in measured.items() if (text := each.doubt_at_ends)}
    if at_ends:
        worst = max(at_ends, key=lambda node: measured[node].unsure_part)
        caveats.append(f"{worst}: {at_ends[worst]}")
    scope = nodes[0].scope.value  # that of all of them
    return replace(figure, coverage=covered, caveat="; ".join(caveats), scope=scope)


def _sampled(measured: Mapping[str, Measurement]) -> str:
    """How much of the window was, at the least, and on which nodes it was not all."""
    least = min(each.coverage for each in measured.values())
    short = [node for node, each in measured.items() if each.coverage < FULL_COVERAGE]
    where = f" on {some_of(short)}" if len(measured) > 1 else ""
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
    return [f"{some_of(names)}: {text}" for text, names in nodes.items()]


def some_of(names: Sequence[str]) -> str:
    """The names with commas; of very many the first."""
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
    if energy.value <= 0:
        return replace(definition.figure(None, f"energy is {energy.value:g} J"), coverage=energy.coverage)
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
