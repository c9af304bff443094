"""Progress as a panel at the foot of the terminal, redrawn in place; the log scrolls above it."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType
from rich.live import Live

from run_benchmarks.display.base import Display
from run_benchmarks.display.drawing import round_panel
from run_benchmarks.display.lines import PlainLines
from run_benchmarks.display.progress import Progress
from run_benchmarks.display.rows import ASCII, UNICODE
from run_benchmarks.names import Node
from run_benchmarks.run_log import LONG
from run_benchmarks.training_state import TrainingState
from utils.events import Event
from utils.telemetry.records import SourceInfo

if TYPE_CHECKING:
    from utils.telemetry.series import AnyTick

# The controller may run on a host that is measured: the clock of the panel needs no more.
DRAWN_PER_SECOND = 1


class Panel(Display):
    """A panel a round. What plain lines would say goes to the log's file all the same.

    Once the user has asked the run to end, there is no panel any more but those lines.
    """

    follows_telemetry = True

    def __init__(self, console: Console) -> None:
        self._console = console
        self._style = ASCII if console.options.ascii_only else UNICODE
        self._lines = PlainLines(LONG)
        self._progress: Progress | None = None
        self._live: Live | None = None
        self._lock = threading.Lock()  # a thread of its own draws
        self._is_over = False
        self._fault: Exception | None = None  # of the thread that draws, which must not log

    def round_started(self, nodes: tuple[Node, ...], training: TrainingState) -> None:
        """A fresh panel."""
        self._lines.round_started(nodes, training)
        with self._lock:
            self._progress = Progress(nodes, training, dict.fromkeys(nodes, ""))
        if not self._is_over:
            self._start()

    def stage(self, node: Node | None, name: str) -> None:
        """Put the stage into the node's row, or into all."""
        self._lines.stage(node, name)
        with self._lock:
            if self._progress is not None:
                rows = [node] if node else self._progress.nodes
                self._progress.stages.update(dict.fromkeys(rows, name))

    def event(self, event: Event) -> None:
        """Take in what rank 0 reported."""
        self._lines.event(event)
        with self._lock:
            if self._progress is not None:
                self._progress.event(event)

    def telemetry(self, node: Node, record: AnyTick | SourceInfo) -> None:
        """Put the power that it tells of into the node's row."""
        with self._lock:
            if self._progress is not None:
                self._progress.telemetry(node, record)

    def round_ended(self) -> None:
        """Take the panel away: the verdict is logged. What kept it from being drawn is raised."""
        self._stop()
        with self._lock:
            self._progress = None
        fault, self._fault = self._fault, None
        if fault is not None:
            raise fault

    def interrupted(self) -> None:
        """Take the panel away for good; stages are logged as lines."""
        self._is_over = True
        self._stop()
        self._lines = PlainLines()

    def close(self) -> None:
        """Take the panel off the terminal."""
        self._stop()

    def _start(self) -> None:
        self._stop()
        self._live = Live(
            console=self._console,
            refresh_per_second=DRAWN_PER_SECOND,
            transient=True,
            get_renderable=self._drawn,
        )
        self._live.start(refresh=True)

    def _stop(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            with suppress(OSError):  # a terminal that was closed must not hold up what comes after
                live.stop()

    def _drawn(self) -> RenderableType:
        size = self._console.size
        with self._lock:
            if self._progress is None:
                return ""
            try:
                return round_panel(self._progress, size.width, size.height, self._style)
            except Exception as error:
                self._fault = error
                return ""
