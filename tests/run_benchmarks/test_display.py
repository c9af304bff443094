"""How progress is shown: lines of the log, or a live table on a terminal."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest
from rich.console import Console

from run_benchmarks import display
from run_benchmarks.display import LiveTable, PlainLines, duration, training_line
from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.run_log import LOGGER, log_to_terminal
from run_benchmarks.training_state import TrainingState
from tests.run_benchmarks.builders import make_nodes, training_events
from utils.events import Event, EventName
from utils.figures import Figure
from utils.records import Verdict

STEP = Event(EventName.STEP_END, {"global_steps": 40, "loss": 2.34567, "seq/s": 812.34}, 3000)
EVALUATE = Event(EventName.EVALUATE, {"metric": "accuracy", "accuracy": 0.25, "target": 0.5}, 4000)


class Clock:
    """The clock that the display reads."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def log() -> io.StringIO:
    """What the log shows."""
    stream = io.StringIO()
    LOGGER.add(stream, level="INFO", format="{message}")
    return stream


@pytest.fixture
def terminal() -> Iterator[tuple[LiveTable, io.StringIO]]:
    stream = io.StringIO()
    table = LiveTable(Console(file=stream, force_terminal=True, width=160))
    yield table, stream
    table.close()


def shown(table: LiveTable) -> list[list[str]]:
    """The rows as a reader sees them, cells apart."""
    stream = io.StringIO()
    Console(file=stream, width=200).print(table._table())
    return [[cell for cell in line.split("  ") if cell] for line in stream.getvalue().splitlines()]


def result_of(case: str, number: int) -> RoundResult:
    figures = {"e2e_time": Figure(12.25, "s", "the script", "FINISHED")}
    return RoundResult(
        case=case,
        round=number,
        started="2026-01-02",
        hosts=("h1",),
        verdict=Verdict.CONVERGED,
        figures=figures,
    )


def state_of(*events: Event) -> TrainingState:
    state = TrainingState()
    for event in events:
        state.update(event)
    return state


def test_a_line_says_what_is_known() -> None:
    assert training_line(TrainingState()) == "waiting for rank 0"
    assert training_line(state_of(Event(EventName.INIT_START))) == "initialising"
    line = training_line(state_of(Event(EventName.TRAIN_START, {"max_steps": 80}, 1000), STEP, EVALUATE))
    assert line.startswith("step 40, loss 2.3457, accuracy 0.2500 / 0.5, 812.3 samples/s, at most ")
    assert training_line(state_of(STEP)) == "step 40, loss 2.3457, 812.3 samples/s"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00"), (59.9, "0:59"), (61, "1:01"), (3600, "1:00:00"), (90061, "25:01:01")]
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_plain_lines_show_every_evaluation_and_a_step_now_and_then(
    log: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(display, "time", clock)
    lines, state = PlainLines(), state_of(STEP)
    lines.round_started(make_nodes(), state)
    lines.stage(None, "train")
    for _ in range(5):
        lines.event(STEP)
        clock.now += 1
    lines.event(EVALUATE)
    clock.now += display.LINE_EVERY_S + 1
    lines.event(STEP)
    lines.event(Event(EventName.EPOCH_END))
    lines.close()
    step = "step 40, loss 2.3457, 812.3 samples/s"
    assert log.getvalue().splitlines() == ["stage: train", step, step, step]


def test_the_table_has_a_row_a_node(terminal: tuple[LiveTable, io.StringIO]) -> None:
    table, _ = terminal
    nodes = make_nodes(("h1", "h2"))
    state = TrainingState()
    table.round_started(nodes, state)
    table.stage(None, "image")
    heading, *rows = shown(table)
    assert [cell.strip() for cell in heading] == list(display.COLUMNS)
    assert [[cell.strip() for cell in row[:3]] for row in rows] == [
        ["h1", "0", "image"],
        ["h2", "1", "image"],
    ]

    table.stage(nodes[0], "train")
    for event in (Event(EventName.TRAIN_START, {"max_steps": 80}, 1000), STEP, EVALUATE):
        state.update(event)
        table.event(event)
    first, second = ([cell.strip() for cell in row] for row in shown(table)[1:])
    assert first[2:7] == ["train: training", "40", "2.3457", "0.2500 / 0.5", "812.3"]
    assert second[2:7] == ["image", "-", "-", "-", "-"]

    table.round_ended()
    assert len(shown(table)) == 1


def test_log_lines_scroll_above_the_table_as_they_are(terminal: tuple[LiveTable, io.StringIO]) -> None:
    """A log line may hold what the terminal library takes for markup."""
    table, stream = terminal
    log_to_terminal("info", table.print_line)
    LOGGER.info("tensor[bold] of shape [2, 3] " + "x" * 300)
    assert "tensor[bold] of shape [2, 3] " + "x" * 300 in stream.getvalue()
    assert "[INFO]" in stream.getvalue()


def test_the_terminal_is_given_back(terminal: tuple[LiveTable, io.StringIO]) -> None:
    table, stream = terminal
    table.close()
    table.close()  # the runner and the command line both see to it
    assert "\x1b[?25h" in stream.getvalue()  # the cursor is shown again


def test_every_event_of_a_training_can_be_shown(terminal: tuple[LiveTable, io.StringIO]) -> None:
    table, _ = terminal
    state = TrainingState()
    table.round_started(make_nodes(("h1",)), state)
    table.stage(None, "train")
    for event in (*training_events(), Event(EventName.STEP_END, {"loss": float("nan")})):
        state.update(event)
        table.event(event)
        assert len(shown(table)) == 2
    assert any("nan" in cell for cell in shown(table)[1])
