"""Progress as lines of the log."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import Any

from run_benchmarks.display.base import Display
from run_benchmarks.display.search import news_of, search_line
from run_benchmarks.host_log import LONGEST_SAID
from run_benchmarks.names import Node
from run_benchmarks.run_log import LOGGER
from run_benchmarks.training_state import LONGEST_NAME, TrainingState
from utils.events import Event, EventName
from utils.numbers import duration
from utils.processor import precision_note
from utils.search.events import RECORDS, SearchEvent
from utils.text_files import shortened, shortened_to_words

# A line of progress this often is enough to see that training goes on, and does not fill a log.
LINE_EVERY_S = 10.0
# So many lines of events are written at once, and then one a second: rank 0 may report anything, at any pace.
LINES_AT_ONCE = 100
LONGEST_OUTCOME = 200  # characters of what is said of an operation


def training_line(state: TrainingState) -> str:
    """What rank 0 has reported, in a line."""
    parts = [f"step {state.step}" if state.step is not None else state.phase or "waiting for rank 0"]
    if state.loss is not None:
        parts.append(f"loss {state.loss:.4f}")
    if state.metric is not None:
        parts.append(f"{state.metric_name} {metric_text(state)}{_evaluated(state)}")
    if state.samples_per_second is not None:
        parts.append(f"{state.samples_per_second:.1f} samples/s")
    left = state.seconds_left()
    if left is not None and state.phase == "training":
        parts.append(f"at most {duration(left)} left")
    return ", ".join(parts)


_NUMBER = r"-?\d{1,400}(?:\.\d{1,400})?(?:e[+-]\d{1,3})?|nan"
_METRIC = (
    rf"(?P<name>\S+) (?P<metric>-|{_NUMBER})( / (?P<target>{_NUMBER}))?"
    r"( \(met [^)]*\)|(?P<older> \((initial|step \d+)\)))?"
)
_STEP_LINE = re.compile(
    rf"step (?P<step>\d{{1,16}})(, loss (?P<loss>{_NUMBER}))?(, {_METRIC})?"
    rf"(, (?P<rate>{_NUMBER}) samples/s)?(, at most .*)?",
    re.ASCII,
)


def numbers_of(line: str) -> dict[str, float]:
    """What a line of training says of its step, the inverse of `training_line`; empty where it is no such line.

    Those that stand there of `step`, `loss`, the metric by its name, if it was evaluated at this step, its `target`
    and `samples/s`.
    """
    match = _STEP_LINE.fullmatch(line)
    if match is None:
        return {}
    metric = None if match["older"] or match["metric"] == "-" else match["metric"]
    words = {
        match["name"]: metric,
        **{name: match[name] for name in ("step", "loss", "target")},
        "samples/s": match["rate"],
    }
    return {name: float(word) for name, word in words.items() if word is not None}


@dataclass(frozen=True)
class OperationEvent:
    """What an event says of an operation of a case that measures. `outcome`: its rate, or why there is none."""

    name: str
    place: str
    outcome: str

    @property
    def line(self) -> str:
        """The same as a line."""
        head = f"{self.name} ({self.place})"
        return f"{head}: {self.outcome}" if self.outcome else f"measuring {head}"


def operation_of(event: Event) -> OperationEvent | None:
    """The operation that begins or ends with `event`; None for events of a training."""
    value, name = event.value, str(event.value.get("metric"))[:LONGEST_NAME]
    if event.name not in (EventName.STEP_BEGIN, EventName.STEP_END) or "metric" not in value:
        return None
    rate, outcome = value.get(name), ""
    if event.name == EventName.STEP_END:
        outcome = f"left out: {value.get('unsupported') or 'no rate was reported'}"
        if isinstance(rate, (int, float)):
            caveat = value.get("caveat")
            outcome = f"{rate:.4g} {value.get('unit', '')}{f' ({caveat})' if caveat else ''}"
    place = f"{value.get('global_steps')} of {value.get('max_steps')}"
    return OperationEvent(name, shortened(place, LONGEST_NAME), shortened(outcome, LONGEST_OUTCOME))


def metric_text(state: TrainingState) -> str:
    """The metric and its target, as far as they were reported."""
    value = "-" if state.metric is None else f"{state.metric:.4f}"
    return value if state.target is None else f"{value} / {state.target:g}"


def _evaluated(state: TrainingState) -> str:
    """When the metric was evaluated, where that is not the step that the line begins with."""
    if state.is_initial:
        return " (initial)"
    if state.is_target_met:
        return f" (met at step {state.evaluated_step})"
    return "" if state.evaluated_step in (None, state.step) else f" (step {state.evaluated_step})"


class PlainLines(Display):
    """Progress as lines of the log.

    Args:
        log: where to; the panel lets them stand in the file alone.
    """

    def __init__(self, log: Any = LOGGER) -> None:
        self._log = log
        self._training = TrainingState()
        self._logged_at, self._logged = 0.0, ""
        self._lines_left, self._counted_at = float(LINES_AT_ONCE), 0.0

    def round_started(self, nodes: tuple[Node, ...], training: TrainingState) -> None:
        """Remember what to show."""
        self._training, self._logged = training, ""

    def stage(self, node: Node | None, name: str) -> None:
        """A line a stage of the whole round."""
        if node is None:
            self._log.info(f"stage: {name}")

    def event(self, event: Event) -> None:
        """Every evaluation and every operation of a measurement, but for a flood of them; a step now and then."""
        operation = operation_of(event)
        if operation is not None:
            self._say(operation.line)
            return
        due = time.monotonic() - self._logged_at > LINE_EVERY_S
        if event.name in RECORDS:
            self._searched(event, due)
            return
        if event.name == EventName.INIT_END and (note := precision_note(event.value)):
            self._say(note)
        elif event.name == EventName.INIT_EVALUATION and self._training.metric is not None:
            state = self._training
            self._say(f"initial evaluation: {state.metric_name} {metric_text(state)}")
        elif event.name == EventName.EVALUATE or (event.name == EventName.STEP_END and due):
            line = training_line(self._training)
            # an evaluation by a script of a case's own may say nothing that is shown
            if due or line != self._logged or self._training.metric is not None:
                self._say(line)
            self._logged_at, self._logged = time.monotonic(), line

    def _searched(self, event: Event, due: bool) -> None:
        """What the controller of a search has said."""
        news, is_over = news_of(event), event.name == SearchEvent.SEARCH_END
        if news:
            self._say(news)
        if (is_over or (event.name == SearchEvent.EPOCH and due)) and (now := self._training.search.now()):
            self._say(search_line(now))
            self._logged_at = time.monotonic()

    def _say(self, line: str) -> None:
        """Log what an event says, unless there were too many of late: they would fill the controller's disk."""
        now = time.monotonic()
        self._lines_left = min(LINES_AT_ONCE, self._lines_left + now - self._counted_at)
        self._counted_at = now
        if self._lines_left >= 1:
            self._lines_left -= 1
            self._log.info(shortened_to_words(line, LONGEST_SAID))
