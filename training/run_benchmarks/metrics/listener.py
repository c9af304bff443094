"""What a run is told of, kept until it is scraped."""

from __future__ import annotations

import copy
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from typing import TYPE_CHECKING

from run_benchmarks.display.base import Display
from run_benchmarks.display.lines import operation_of
from run_benchmarks.display.progress import is_measurement
from run_benchmarks.metrics.readings import LatestReadings
from run_benchmarks.names import Node, RunId
from run_benchmarks.plan.records import Plan
from run_benchmarks.plan.secrets import NO_SECRETS, Secrets
from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.round_watch import NO_CONTACT
from run_benchmarks.run_log import LOGGER
from run_benchmarks.search_state import SearchNow
from run_benchmarks.training_state import TrainingState
from utils.events import Event, EventName
from utils.numbers import number_in
from utils.records import FailureClass, Stage, Verdict
from utils.telemetry.records import SourceInfo
from utils.text_files import one_line, shortened

if TYPE_CHECKING:
    from utils.telemetry.series import AnyTick

MOST_NODES = 2_048  # whose series are shown
MOST_NAMES = 256  # that a task may give to metrics and operations in a round
LONGEST_LABEL = 128  # characters


@dataclass
class RoundState:
    """The round that runs, or ran last. Times are the controller's, in s since the epoch.

    training: as of rank 0's last event, which came at `progressed_at`. metrics, operations: what was evaluated or
    measured last, by its label. values_left_out: those that came with a further name, for there are too many.
    search: what it has come to, if it is one.
    nodes: whether contact with a node was there; empty once nothing of the round is left on its hosts.
    """

    case: str
    number: int
    started_at: float
    is_measurement: bool
    training: TrainingState
    progressed_at: float | None = None
    search: SearchNow | None = None
    metrics: dict[str, float] = field(default_factory=dict)
    operations: dict[str, float] = field(default_factory=dict)
    values_left_out: int = 0
    nodes: dict[Node, bool] = field(default_factory=dict)
    readings: dict[Node, LatestReadings] = field(default_factory=dict)

    @property
    def nodes_left_out(self) -> int:
        """How many nodes are not shown."""
        return max(0, len(self.nodes) - MOST_NODES)


@dataclass
class RunState:
    """A run so far. rounds: case -> how many are planned. verdicts: by case and verdict; repeated: case -> attempts.

    failures: by class, of rounds and of attempts that do not count.
    """

    run: RunId
    rounds: dict[str, int]
    secrets: Secrets = NO_SECRETS
    stage: str = Stage.PREFLIGHT.value
    verdicts: Counter[tuple[str, Verdict]] = field(default_factory=Counter)
    repeated: Counter[str] = field(default_factory=Counter)
    failures: Counter[FailureClass] = field(default_factory=Counter)
    round: RoundState | None = None

    def label(self, text: str) -> str:
        """A text of a stranger as the value of a label."""
        return one_line(shortened(self.secrets.hide(text), LONGEST_LABEL))


class RunListener(Display):
    """Keeps what there is to be scraped; `state` may be asked for by any thread.

    Args:
        address, port: where that is served, for the log.
    """

    follows_telemetry = True

    def __init__(self, address: str, port: int) -> None:
        self.is_interrupted = False
        self._address, self._port = ip_address(address), port
        self._lock = threading.Lock()
        self._state: RunState | None = None
        self._training = TrainingState()  # which the follower of rank 0 fills

    def state(self) -> RunState | None:
        """The run as it is now; what a scrape reads of it does not change meanwhile."""
        with self._lock:
            state = self._state
            if state is None:
                return None
            return replace(
                state,
                verdicts=state.verdicts.copy(),
                repeated=state.repeated.copy(),
                failures=state.failures.copy(),
                round=state.round and _copied(state.round),
            )

    def run_started(self, run: RunId, plan: Plan, ended: Sequence[RoundResult]) -> None:
        """Begin to keep."""
        host = f"[{self._address}]" if self._address.version == 6 else str(self._address)
        LOGGER.info(f"metrics: http://{host}:{self._port}/metrics")
        if not self._address.is_loopback:
            LOGGER.warning("others on the network can read the metrics (METRICS_ADDRESS)")
        rounds = {case.settings.name: len(list(plan.rounds(case))) for case in plan.cases}
        with self._lock:
            self._state = RunState(run, rounds, plan.secrets)
        for result in ended:
            self.round_judged(result)

    def round_started(self, nodes: tuple[Node, ...], training: TrainingState) -> None:
        """What was of the round before is dropped."""
        self._training = training
        first, label = nodes[0], self._label
        state = RoundState(
            first.case.settings.name,
            first.round,
            time.time(),
            is_measurement(nodes),
            copy.copy(training),
            nodes=dict.fromkeys(nodes, True),
            readings={node: LatestReadings(label) for node in nodes[:MOST_NODES]},
        )
        with self._lock:
            if self._state is not None:
                self._state.round = state

    def stage(self, node: Node | None, name: str) -> None:
        """A stage of the whole round; of a single node its contact alone counts."""
        with self._lock:
            state = self._state
            if state is None:
                return
            if node is None:
                state.stage = name
                if name == Stage.ACQUIRE.value:  # the round that begins has no nodes yet
                    state.round = None
            elif state.round is not None and node in state.round.nodes:
                state.round.nodes[node] = name != NO_CONTACT

    def event(self, event: Event) -> None:
        """What rank 0 has reported so far."""
        with self._lock:
            round_state = self._state.round if self._state else None
            if round_state is None:
                return
            round_state.progressed_at = time.time()
            round_state.training = training = copy.copy(self._training)
            round_state.search = training.search.now()
            if not round_state.is_measurement:
                if event.name in (EventName.INIT_EVALUATION, EventName.EVALUATE):
                    self._keep(round_state, round_state.metrics, training.metric_name, training.metric)
                return
            operation = operation_of(event)
            if operation is not None and event.name == EventName.STEP_END:
                rate = number_in(event.value, operation.name)
                self._keep(round_state, round_state.operations, operation.name, rate)

    def telemetry(self, node: Node, record: AnyTick | SourceInfo) -> None:
        """The newest reading of each source counts."""
        with self._lock:
            round_state = self._state.round if self._state else None
            if round_state is not None and node in round_state.readings:
                round_state.readings[node].take(record)

    def round_ended(self) -> None:
        """Its nodes are dropped; what it was trained to stays until the next round begins."""
        with self._lock:
            if self._state and self._state.round:
                self._state.stage = Stage.JUDGE.value
                self._state.round = replace(self._state.round, nodes={}, readings={})

    def attempt_failed(self, result: RoundResult) -> None:
        """Count it."""
        with self._lock:
            if self._state:
                self._state.repeated[result.case] += 1
                _count_failure(self._state, result)

    def round_judged(self, result: RoundResult) -> None:
        """Count it."""
        with self._lock:
            if self._state:
                self._state.verdicts[result.case, result.verdict] += 1
                _count_failure(self._state, result)

    def interrupted(self) -> None:
        """Nobody waits for a last scrape."""
        self.is_interrupted = True

    def _label(self, text: str) -> str:
        return self._state.label(text) if self._state else ""

    def _keep(
        self, round_state: RoundState, values: dict[str, float], name: str, value: float | None
    ) -> None:
        label = self._label(name)
        if value is None or not label:
            return
        if label in values or len(values) < MOST_NAMES:
            values[label] = value
        else:
            round_state.values_left_out += 1


def _copied(state: RoundState) -> RoundState:
    return replace(
        state,
        metrics=state.metrics.copy(),
        operations=state.operations.copy(),
        nodes=state.nodes.copy(),
        readings=state.readings.copy(),
    )


def _count_failure(state: RunState, result: RoundResult) -> None:
    if result.failure:
        state.failures[result.failure.failure_class] += 1
