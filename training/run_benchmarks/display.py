"""The two ways to show progress: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time

from rich.console import Console
from rich.live import Live
from rich.table import Table

from run_benchmarks.names import Node
from run_benchmarks.run_log import LOGGER
from run_benchmarks.training_state import TrainingState
from utils.events import Event, EventName

# A line of progress this often is enough to see that training goes on, and does not fill a log.
LINE_EVERY_S = 10.0
COLUMNS = ("host", "node", "stage", "step", "loss", "metric / target", "samples/s", "time left", "elapsed")


def training_line(state: TrainingState) -> str:
    """What rank 0 has reported, in a line."""
    parts = [f"step {state.step}" if state.step is not None else state.phase or "waiting for rank 0"]
    if state.loss is not None:
        parts.append(f"loss {state.loss:.4f}")
    if state.metric is not None:
        parts.append(f"{state.metric_name} {_metric(state)}")
    if state.samples_per_second is not None:
        parts.append(f"{state.samples_per_second:.1f} samples/s")
    left = state.seconds_left()
    if left is not None and state.phase == "training":
        parts.append(f"at most {duration(left)} left")
    return ", ".join(parts)


def duration(seconds: float) -> str:
    """Seconds as `h:mm:ss` or `m:ss`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _metric(state: TrainingState) -> str:
    shown = "-" if state.metric is None else f"{state.metric:.4f}"
    return shown if state.target is None else f"{shown} / {state.target:g}"


class Display:
    """Told of every change while a run goes on; decides nothing, and by itself shows nothing."""

    def round_started(self, nodes: tuple[Node, ...], training: TrainingState) -> None:
        """A round begins on `nodes`; `training` is filled while it runs."""

    def stage(self, node: Node | None, name: str) -> None:
        """A node (None: every node of the round) has come to the stage `name`."""

    def event(self, event: Event) -> None:
        """Rank 0 reported `event`."""

    def round_ended(self) -> None:
        """Nothing of the round is left on its hosts."""

    def close(self) -> None:
        """Leave the terminal as it was."""


class PlainLines(Display):
    """Progress as lines of the log."""

    def __init__(self) -> None:
        self._training = TrainingState()
        self._shown_at = 0.0

    def round_started(self, nodes: tuple[Node, ...], training: TrainingState) -> None:
        """Remember what to show."""
        self._training = training

    def stage(self, node: Node | None, name: str) -> None:
        """A line a stage of the whole round."""
        if node is None:
            LOGGER.info(f"stage: {name}")

    def event(self, event: Event) -> None:
        """Every evaluation, and a step now and then."""
        due = time.monotonic() - self._shown_at > LINE_EVERY_S
        if event.name == EventName.EVALUATE or (event.name == EventName.STEP_END and due):
            LOGGER.info(training_line(self._training))
            self._shown_at = time.monotonic()


class LiveTable(Display):
    """Progress as a table a node a row, redrawn in place; the log scrolls above it."""

    def __init__(self, console: Console) -> None:
        self._training = TrainingState()
        self._stages: dict[Node, str] = {}
        self._started = time.monotonic()
        self._live = Live(console=console, refresh_per_second=4, transient=True, get_renderable=self._table)
        self._console = console
        self._live.start()

    def round_started(self, nodes: tuple[Node, ...], training: TrainingState) -> None:
        """Fresh rows for the round's nodes."""
        self._training = training
        self._stages = dict.fromkeys(nodes, "")
        self._started = time.monotonic()

    def stage(self, node: Node | None, name: str) -> None:
        """Put the stage into the node's row, or into all."""
        for row in [node] if node else list(self._stages):
            self._stages[row] = name

    def round_ended(self) -> None:
        """Remove the rows: the verdict is logged."""
        self._stages = {}

    def print_line(self, line: str) -> None:
        """Print a line of the log, with its end, above the table."""
        self._console.print(line, end="", markup=False, highlight=False, soft_wrap=True)

    def close(self) -> None:
        """Take the table off the terminal."""
        self._live.stop()

    def _table(self) -> Table:
        table = Table(*COLUMNS, box=None, pad_edge=False)
        state = self._training
        left = state.seconds_left()
        elapsed = duration(time.monotonic() - self._started)
        for node, stage in self._stages.items():
            training = stage == "train"
            shown = (
                str(state.step) if state.step is not None else "-",
                f"{state.loss:.4f}" if state.loss is not None else "-",
                _metric(state),
                f"{state.samples_per_second:.1f}" if state.samples_per_second is not None else "-",
                f"<= {duration(left)}" if left is not None else "-",
            )
            phase = f"{stage}: {state.phase}" if training and state.phase else stage
            cells = shown if training else ("-",) * len(shown)
            table.add_row(node.host, str(node.rank), phase, *cells, elapsed)
        return table
