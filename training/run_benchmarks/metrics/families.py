"""A run as metric families of the official client library, which writes them as a scraper asks for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from prometheus_client import Metric

from run_benchmarks.metrics import definitions as d
from run_benchmarks.metrics.listener import RoundState, RunListener, RunState
from run_benchmarks.metrics.readings import SourceState
from run_benchmarks.names import Node
from run_benchmarks.search_state import SearchNow
from run_benchmarks.training_state import PHASES
from utils.records import FailureClass, Stage, Verdict
from utils.search.events import TRIAL_STATES
from utils.telemetry.records import Sample, Scope

MOST_DEVICES = 4_096  # of all nodes together
Labels = tuple[str, ...]


class RunCollector:
    """What the client library asks at each scrape."""

    def __init__(self, listener: RunListener) -> None:
        self._listener = listener

    def collect(self) -> Iterable[Metric]:
        """The run as it is now; nothing before it has begun."""
        state = self._listener.state()
        return families_of(state) if state else ()


def families_of(state: RunState) -> list[Metric]:
    """All families of a run that have a sample."""
    table = _Table()
    _add_run(table, state)
    left_out = {"nodes": 0, "devices": 0, "values": 0}
    if state.round:
        _add_training(table, state, state.round)
        if state.round.search:
            _add_search(table, _labels_of(state, state.round), state.round.search)
        left_out["values"] = state.round.values_left_out
        left_out["nodes"] = state.round.nodes_left_out
        left_out["devices"] = _add_nodes(table, state, state.round)
    for what, count in left_out.items():
        table.add(d.LEFT_OUT, (state.run.name, what), count)
    return list(table.families())


class _Table:
    """The families that have a sample, in the order of their definitions."""

    def __init__(self) -> None:
        self._families: dict[str, Metric] = {}

    def families(self) -> Iterator[Metric]:
        return (self._families[each.name] for each in d.DEFINITIONS if each.name in self._families)

    def add(self, definition: d.Definition, labels: Labels, value: float | None) -> None:
        """A sample; None is "not measured" and makes none."""
        if value is None:
            return
        family = self._families.get(definition.name)
        if family is None:
            family = Metric(definition.name, definition.help, definition.kind, definition.unit)
            self._families[definition.name] = family
        family.add_sample(definition.sample, dict(zip(definition.labels, labels, strict=True)), value)

    def add_states(self, definition: d.Definition, labels: Labels, states: Iterable[str], now: str) -> None:
        """In which of `states` something is."""
        for state in states:
            self.add(definition, (*labels, state), state == now)


def _add_run(table: _Table, state: RunState) -> None:
    run = (state.run.name,)
    table.add(d.RUN_INFO, (*run, state.run.uid), 1)
    table.add(d.RUN_START, run, datetime.fromisoformat(state.run.started).timestamp())
    table.add_states(d.STAGE, run, (stage.value for stage in Stage), state.stage)
    for case, planned in state.rounds.items():
        table.add(d.ROUNDS_PLANNED, (*run, case), planned)
        table.add(d.ATTEMPTS, (*run, case), state.repeated[case])
        for verdict in Verdict:  # also of none: a rate is seen from 0 to 1
            table.add(d.ROUNDS, (*run, case, verdict.value), state.verdicts[case, verdict])
    for kind in FailureClass:
        table.add(d.FAILURES, (*run, kind.value), state.failures[kind])


def _labels_of(state: RunState, of_round: RoundState) -> Labels:
    return state.run.name, of_round.case, str(of_round.number)


def _add_training(table: _Table, state: RunState, of_round: RoundState) -> None:
    labels, training = _labels_of(state, of_round), of_round.training
    table.add(d.ROUND_START, labels, of_round.started_at)
    table.add_states(d.PHASE, labels, dict.fromkeys(PHASES.values()), training.phase)
    for definition, value in (
        (d.PROGRESS, of_round.progressed_at),
        (d.STEPS, _count(training.step)),
        (d.STEPS_LIMIT, training.max_steps),
        (d.SAMPLES, _count(training.samples)),
        (d.SAMPLES_LIMIT, training.max_samples),
        (d.LOSS, training.loss),
        (d.THROUGHPUT, training.samples_per_second),
        (d.TIME_LEFT, training.seconds_left()),
    ):
        table.add(definition, labels, value)
    if training.target is not None and not of_round.is_measurement:
        table.add(d.TARGET, (*labels, state.label(training.metric_name)), training.target)
    for metric, value in of_round.metrics.items():
        table.add(d.METRIC, (*labels, metric), value)
    for operation, rate in of_round.operations.items():
        table.add(d.OPERATION, (*labels, operation), rate)


def _add_search(table: _Table, labels: Labels, now: SearchNow) -> None:
    for state in TRIAL_STATES:
        table.add(d.SEARCH_TRIALS, (*labels, state), now.ended.get(state, 0))
    for definition, value in (
        (d.SEARCH_RUNNING, now.running),
        (d.SEARCH_EPOCHS, now.epochs),
        (d.SEARCH_ACCURACY, now.accuracy),
        (d.SEARCH_SCORE, now.score),
        (d.SEARCH_WORKERS, now.workers),
        (d.SEARCH_WORKERS_PLANNED, now.planned),
        (d.SEARCH_WAITING, now.waiting),
        (d.SEARCH_LEFT, now.left_s),
    ):
        table.add(definition, labels, value)


def _count(number: int | None) -> int | None:
    """What has been counted; a counter is never below 0."""
    return number if number is None or number >= 0 else None


def _add_nodes(table: _Table, state: RunState, of_round: RoundState) -> int:
    """The nodes that are shown, and their devices; how many of these are left out."""
    before, sources = _labels_of(state, of_round), []
    for node, readings in of_round.readings.items():
        labels = (*before, *_node_labels(node))
        table.add(d.REACHABLE, labels, of_round.nodes[node])
        power = readings.power()
        if power:
            table.add(d.NODE_POWER, (*labels, power.scope.value), power.watts)
        for name, source in readings.sources().items():
            of_source = (*labels, name, source.info.scope.value)
            table.add(d.SOURCE_UP, of_source, source.is_up)
            read_s = None if source.read_ms is None else source.read_ms / 1000
            table.add(d.SOURCE_READ, of_source, read_s)
            sources.append((of_source, source))
    # where not all have room, what draws power goes first
    sources.sort(key=lambda each: each[1].info.scope is Scope.HOST)
    return _add_devices(table, state, sources)


def _node_labels(node: Node) -> Labels:
    return str(node.rank), node.host


def _add_devices(table: _Table, state: RunState, sources: Sequence[tuple[Labels, SourceState]]) -> int:
    room, left_out = MOST_DEVICES, 0
    for labels, source in sources:
        left_out += source.left_out
        for device, sample in source.samples.items():
            if room:
                _add_device(table, state, (*labels, device), sample)
                room -= 1
            else:
                left_out += 1
    return left_out


def _add_device(table: _Table, state: RunState, labels: Labels, sample: Sample) -> None:
    for each in d.DEVICE_METRICS:
        table.add(each.definition, labels, each.value(getattr(sample, each.quantity.name)))
    if sample.throttle is not None:
        table.add(d.THROTTLED, (*labels, state.label(sample.throttle)), bool(sample.throttle))
