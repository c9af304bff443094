"""Progress as lines of the log."""

from __future__ import annotations

import io
import math
from dataclasses import replace

import pytest
from rich.console import Console

from run_benchmarks.display import lines as display_lines
from run_benchmarks.display import panel
from run_benchmarks.display.base import Display
from run_benchmarks.display.guarded import Guarded
from run_benchmarks.display.lines import PlainLines, numbers_of, training_line
from run_benchmarks.run_log import LOGGER
from run_benchmarks.training_state import TrainingState
from tests.run_benchmarks.builders import make_nodes
from tests.run_benchmarks.display.rounds import operation
from utils.events import Event, EventName
from utils.numbers import duration

STEP = Event(EventName.STEP_END, {"global_steps": 40, "loss": 2.34567, "seq/s": 812.34})
EVALUATE = Event(EventName.EVALUATE, {"metric": "accuracy", "accuracy": 0.25, "target": 0.5})


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


def state_of(*events: Event) -> TrainingState:
    state = TrainingState()
    for second, event in enumerate(events, 1):
        state.update(replace(event, time_ms=1000 * second))
    return state


def test_a_line_says_what_is_known() -> None:
    assert training_line(TrainingState()) == "waiting for rank 0"
    assert training_line(state_of(Event(EventName.INIT_START))) == "initialising"
    line = training_line(state_of(Event(EventName.TRAIN_START, {"max_steps": 80}), STEP, EVALUATE))
    assert line.startswith("step 40, loss 2.3457, accuracy 0.2500 / 0.5, 812.3 samples/s, at most ")
    assert training_line(state_of(STEP)) == "step 40, loss 2.3457, 812.3 samples/s"


def test_the_numbers_of_a_line_are_read_back() -> None:
    for events, numbers in (
        ((STEP,), {"step": 40, "loss": 2.3457, "samples/s": 812.3}),
        ((STEP, EVALUATE), {"step": 40, "loss": 2.3457, "accuracy": 0.25, "target": 0.5, "samples/s": 812.3}),
        ((EVALUATE,), {}),
    ):
        assert numbers_of(training_line(state_of(*events))) == numbers
    later = replace(STEP, value={**STEP.value, "global_steps": 60})
    assert "accuracy" not in numbers_of(training_line(state_of(STEP, EVALUATE, later))), "it is of step 40"
    initial = replace(EVALUATE, name=EventName.INIT_EVALUATION)
    assert "accuracy" not in numbers_of(training_line(state_of(initial, STEP))), "it is of no step"
    diverged = training_line(state_of(replace(STEP, value={"global_steps": 40, "loss": None})))
    assert math.isnan(numbers_of(diverged)["loss"])
    assert numbers_of("initial evaluation: accuracy 0.1000") == numbers_of("step by step") == {}


@pytest.mark.parametrize(
    "line",
    [
        "step 5, x 1.2.3, at most 0.9000 / 0.95",
        "step 5, loss abc",
        "step 5, acc 0.5 / five",
        f"step {'9' * 400}, loss 1.0",
        "step 5, ... samples/s",
    ],
)
def test_a_line_that_only_looks_like_one_of_training_has_no_numbers(line: str) -> None:
    assert numbers_of(line) == {}


def test_a_display_that_fails_is_logged_once_and_ends_no_round(log: io.StringIO) -> None:
    class Broken(Display):
        follows_telemetry = True

        def event(self, event: Event) -> None:
            raise OverflowError("int too large to convert to float")

    display = Guarded(Broken())
    display.round_started(make_nodes(), TrainingState())
    for _ in range(3):
        display.event(STEP)
    display.round_ended()
    assert display.follows_telemetry and log.getvalue().count("OverflowError") == 1
    assert log.getvalue().startswith("the run is not shown as it should be, and goes on: OverflowError")


def test_what_the_panel_cannot_draw_is_said_when_the_round_has_ended(
    log: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is drawn by a thread, and once more where it is taken away."""
    monkeypatch.setattr(panel, "round_panel", lambda *_: 1 / 0)
    display = Guarded(panel.Panel(Console(file=io.StringIO(), force_terminal=True)))
    display.round_started(make_nodes(), TrainingState())
    display.round_ended()
    display.close()
    assert log.getvalue().count("ZeroDivisionError") == 1


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00"), (59.9, "0:59"), (61, "1:01"), (3600, "1:00:00"), (90061, "25:01:01")]
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_plain_lines_show_every_evaluation_and_a_step_now_and_then(
    log: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(display_lines, "time", clock)
    lines, state = PlainLines(), state_of(STEP)
    lines.round_started(make_nodes(), state)
    lines.stage(None, "train")
    for _ in range(5):
        lines.event(STEP)
        clock.now += 1
    lines.event(Event(EventName.EVALUATE, {"eval_acc1": 0.5}))  # of which nothing is shown
    clock.now += display_lines.LINE_EVERY_S + 1
    lines.event(STEP)
    state.update(EVALUATE)
    lines.event(EVALUATE)
    lines.event(EVALUATE)
    lines.event(Event(EventName.EPOCH_END))
    lines.close()
    step = "step 40, loss 2.3457, 812.3 samples/s"
    evaluated = "step 40, loss 2.3457, accuracy 0.2500 / 0.5, 812.3 samples/s"
    assert log.getvalue().splitlines() == ["stage: train", step, step, evaluated, evaluated]


def test_a_flood_of_evaluations_does_not_fill_the_log(
    log: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One names a metric as long as a line may be, and thousands after it have its name in their line."""
    clock = Clock()
    monkeypatch.setattr(display_lines, "time", clock)
    lines, state = PlainLines(), TrainingState()
    lines.round_started(make_nodes(), state)
    name = "m" * 500_000
    for value in ({"metric": name, name: 0.5}, *[{name[:64]: 0.5}] * 5_000):
        state.update(Event(EventName.EVALUATE, value))
        lines.event(Event(EventName.EVALUATE, value))
    assert len(log.getvalue().splitlines()) == display_lines.LINES_AT_ONCE
    assert len(log.getvalue()) < 100 * display_lines.LINES_AT_ONCE
    clock.now += 2.5
    for _ in range(5):
        lines.event(EVALUATE)
    assert len(log.getvalue().splitlines()) == display_lines.LINES_AT_ONCE + 2


def test_the_precision_that_was_settled_on_is_said_and_no_flood_of_it(
    log: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(display_lines, "time", Clock())
    lines = PlainLines()
    for reason in ("it is native", *["why " * 10_000] * 1_000):
        lines.event(Event(EventName.INIT_END, {"precision": "bf16", "precision_reason": reason}))
    said = log.getvalue().splitlines()
    assert said[0] == 'precision = "auto" is bf16 here: it is native'
    assert len(said) == display_lines.LINES_AT_ONCE and max(map(len, said)) < 1_100


def test_an_operation_is_said_in_a_line_of_reasonable_length() -> None:
    long = "x" * 500_000
    event = operation(EventName.STEP_END, 1, long, unsupported=long, max_steps=long)
    said = display_lines.operation_of(event)
    assert said is not None and len(said.line) < 500


def test_the_evaluation_before_training_is_called_so(log: io.StringIO) -> None:
    begun = Event(EventName.INIT_EVALUATION, {"metric": "accuracy", "accuracy": 0.125, "target": 0.5})
    lines, state = PlainLines(), state_of(begun)
    lines.round_started(make_nodes(), state)
    lines.event(begun)
    assert log.getvalue() == "initial evaluation: accuracy 0.1250 / 0.5\n"


def test_plain_lines_show_every_operation_of_a_measurement(log: io.StringIO) -> None:
    lines, state = PlainLines(), TrainingState()
    lines.round_started(make_nodes(), state)
    for event in (
        operation(EventName.STEP_BEGIN, 1, "gemm_fp32"),
        operation(EventName.STEP_END, 1, "gemm_fp32", gemm_fp32=0.71234, unit="TFLOP/s"),
        operation(EventName.STEP_END, 2, "gemm_tf32", gemm_tf32=None, unsupported="not on this device"),
        operation(EventName.STEP_END, 3, "gemm_int8"),
        operation(EventName.STEP_END, 3, "gemm_int8", gemm_int8=1.5, unit="TOP/s", caveat="not steady"),
    ):
        state.update(event)
        lines.event(event)
    assert log.getvalue().splitlines() == [
        "measuring gemm_fp32 (1 of 3)",
        "gemm_fp32 (1 of 3): 0.7123 TFLOP/s",
        "gemm_tf32 (2 of 3): left out: not on this device",
        "gemm_int8 (3 of 3): left out: no rate was reported",
        "gemm_int8 (3 of 3): 1.5 TOP/s (not steady)",
    ]


def test_a_line_says_when_its_metric_was_evaluated() -> None:
    before = Event(EventName.INIT_EVALUATION, {"metric": "accuracy", "accuracy": 0.125, "target": 0.5}, 500)
    assert "accuracy 0.1250 / 0.5 (initial)" in training_line(state_of(before, STEP))
    evaluated = Event(EventName.EVALUATE, {**EVALUATE.value, "global_steps": 40}, 4000)
    assert "accuracy 0.2500 / 0.5, " in training_line(state_of(STEP, evaluated))
    later = Event(EventName.STEP_END, {"global_steps": 60}, 5000)
    assert "accuracy 0.2500 / 0.5 (step 40)" in training_line(state_of(STEP, evaluated, later))
    met = Event(EventName.EVALUATE, {**evaluated.value, "accuracy": 0.5, "global_steps": 60}, 6000)
    assert "accuracy 0.5000 / 0.5 (met at step 60)" in training_line(state_of(STEP, met))
