"""A round as a panel: what it says, and that it fits terminals of every size."""

from __future__ import annotations

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from run_benchmarks.display import progress as progress_module
from run_benchmarks.display.drawing import SPARE_COLUMNS, SPARE_LINES, WIDEST, round_panel
from run_benchmarks.display.power_meter import Power
from run_benchmarks.display.progress import POWER_KEPT_S, Progress
from run_benchmarks.display.rows import ASCII, UNICODE, Style
from tests.fakes.clock import HandClock
from tests.run_benchmarks.builders import training_events
from tests.run_benchmarks.display.rounds import BEGUN, evaluation, operation, round_of, step
from utils.events import Event, EventName
from utils.telemetry.records import Scope

LONG_HOST = "a-host-whose-name-is-far-longer-than-any-column-of-a-table-has-room-for.cluster.example.org"


def shown(progress: Progress, width: int = 80, height: int = 24, style: Style = UNICODE) -> list[str]:
    """The lines of the panel."""
    stream = io.StringIO()
    console = Console(file=stream, width=width, height=height, color_system=None)
    console.print(round_panel(progress, width, height, style))
    return stream.getvalue().splitlines()


def line_of(progress: Progress, label: str, width: int = 80) -> str:
    """The panel's line that begins with `label`."""
    (line,) = (line for line in shown(progress, width) if line.startswith(f"│ {label} "))
    return line


def test_a_round_says_how_far_it_is() -> None:
    progress = round_of(["h1"], *BEGUN, step(20, 4.0), evaluation(0.2), step(40), evaluation(0.3))
    assert "toy:pytorch:X1:2:1:1, round 1 of 1" in shown(progress)[0]
    assert "train: training" in line_of(progress, "stage")
    steps, way = line_of(progress, "steps"), line_of(progress, "accuracy")
    assert "40 / 80, at most 0:" in steps
    assert abs(steps.count("━") - steps.count("─")) <= 1  # 40 of 80
    assert "0.3000 / 0.5, from 0.1000" in way
    assert abs(way.count("━") - way.count("─")) <= 1  # 0.3 is half the way from 0.1 to 0.5
    assert "█▁" in line_of(progress, "loss") and "2.3457" in line_of(progress, "loss")
    assert "812.3" in line_of(progress, "samples/s")
    assert any("▁█" in line and "accuracy" not in line for line in shown(progress))
    assert "node 0: train" in line_of(progress, "h1")


def test_the_way_to_the_target_begins_at_the_baseline_where_nothing_was_evaluated_before() -> None:
    begun = Event(EventName.INIT_EVALUATION, {"metric": "accuracy", "baseline": 0.25})
    progress = round_of(["h1"], BEGUN[0], begun, BEGUN[2], evaluation(0.375))
    assert "0.3750 / 0.5, from 0.2500" in line_of(progress, "accuracy")
    assert progress.to_target() == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("before", "metric", "target", "part"),
    [(0.1, 0.05, 0.5, 0.0), (0.6, 0.55, 0.5, 1.0), (0.5, 0.4, 0.5, 0.0), (-1.0, 0.0, 1.0, 0.5)],
)
def test_the_way_to_the_target(before: float, metric: float, target: float, part: float) -> None:
    begun = Event(EventName.INIT_EVALUATION, {"metric": "accuracy", "accuracy": before})
    assert round_of(["h1"], begun, evaluation(metric, target)).to_target() == pytest.approx(part)


def test_the_nearer_of_two_caps_is_shown() -> None:
    begun = Event(EventName.INIT_START, {"config": {"max_steps": 100, "max_samples_termination": 1000}})
    progress = round_of(
        ["h1"], begun, Event(EventName.STEP_END, {"global_steps": 10, "num_trained_samples": 900})
    )
    assert "900 / 1000" in line_of(progress, "samples")


def test_a_measurement_says_what_is_under_way_and_what_came_out() -> None:
    progress = round_of(
        ["h1"],
        Event(EventName.TRAIN_START),
        operation(EventName.STEP_BEGIN, 1, "gemm_fp32"),
        operation(EventName.STEP_END, 1, "gemm_fp32", gemm_fp32=0.71234, unit="TFLOP/s", caveat="c" * 90),
        operation(EventName.STEP_BEGIN, 2, "gemm_bf16"),
        measures=True,
    )
    assert "1 / 3, gemm_bf16 under way" in line_of(progress, "operations")
    assert "0.7123 TFLOP/s" in line_of(progress, "gemm_fp32")
    assert "━" in line_of(progress, "operations")
    assert not any("left" in line or "samples/s" in line for line in shown(progress))


def test_power_is_of_each_node_and_of_all_and_says_what_it_speaks_of(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = HandClock()
    monkeypatch.setattr(progress_module, "time", clock)
    progress = round_of(["h1", "h2"], *BEGUN)
    first, second = progress.nodes
    progress.draws(first, Power(612.4, Scope.MACHINE))
    assert "612 W (machine), 1 of 2 nodes" in line_of(progress, "power")
    progress.draws(second, Power(10_000.0, Scope.MACHINE))
    assert "10.6 kW (machine)" in line_of(progress, "power") and "612 W (machine)" in line_of(progress, "h1")
    progress.draws(second, Power(95.0, Scope.PACKAGE))
    assert not any(line.startswith("│ power") for line in shown(progress)), "two scopes are never added"
    clock.now += POWER_KEPT_S + 1
    assert not any(" W (" in line for line in shown(progress)), "what is old says nothing of now"


def test_many_nodes_are_folded_to_those_that_differ() -> None:
    progress = round_of([f"node{number}" for number in range(100)], *BEGUN, step(20))
    progress.stages[progress.nodes[7]] = "no contact"
    assert "train" in line_of(progress, "99 nodes")
    assert "node 7: no contact" in line_of(progress, "node7")
    for node in progress.nodes[40:90]:
        progress.stages[node] = "launch"
    lines = shown(progress)
    assert len(lines) <= 24 - SPARE_LINES
    assert "other stages" in lines[-2]


@pytest.mark.parametrize("style", [UNICODE, ASCII])
@pytest.mark.parametrize("nodes", [1, 100])
@pytest.mark.parametrize("width", [1, 40, 80, 200])
@pytest.mark.parametrize("height", [1, 8, 24])
def test_it_fits(width: int, height: int, nodes: int, style: Style) -> None:
    hosts = [f"{number}-{LONG_HOST}" for number in range(nodes)]
    progress = round_of(hosts, *BEGUN, step(20), evaluation(0.2), step(40), evaluation(0.3), case="c" * 150)
    progress.draws(progress.nodes[0], Power(612.4, Scope.MACHINE))
    progress.stages[progress.nodes[-1]] = "no contact"
    lines = shown(progress, width, height, style)
    assert len(lines) <= max(1, height - SPARE_LINES)
    assert max(map(cell_len, lines)) <= max(1, min(width - SPARE_COLUMNS, WIDEST))
    if style is ASCII:
        assert "".join(lines).isascii()


@pytest.mark.parametrize("width", [60, 80, 200])
def test_nothing_that_counts_is_cut_off(width: int) -> None:
    progress = round_of([LONG_HOST, "h2"], *BEGUN, step(20), evaluation(0.2), step(40), evaluation(0.3))
    text = "\n".join(shown(progress, width))
    for words in ("40 / 80, at most 0:", "0.3000 / 0.5, from 0.1000", "2.3457", "812.3", "train: training"):
        assert words in text
    assert "a-host" in text and "org" in text
    assert "━" in text


def test_every_event_of_a_training_can_be_shown() -> None:
    events: list[Event] = []
    for event in (*training_events(), Event(EventName.STEP_END, {"loss": float("nan")})):
        events.append(event)
        lines = shown(round_of(["h1"], *events))
        assert lines[0].startswith("╭") and lines[-1].startswith("╰")
    assert any("nan" in line for line in lines)


@given(
    st.text() | st.sampled_from(["\x1b]52;c;eA==\x07\n│ x", "[red]x[/red]\r\n", "\u202ex\u200b", ":smile:"])
)
@settings(derandomize=True, max_examples=100, deadline=None)
def test_no_name_breaks_out_of_its_row(text: str) -> None:
    met = Event(EventName.EVALUATE, {"metric": text, text: 0.3, "target": 0.5})
    lines = shown(round_of(["h1"], *BEGUN, met))
    assert all(line.isprintable() and line[0] + line[-1] in ("╭╮", "││", "╰╯") for line in lines)
    assert len(lines) == len(shown(round_of(["h1"], *BEGUN, evaluation(0.3))))
