"""A round as a panel that fits the terminal, whatever its size."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import ASCII as ASCII_BOX
from rich.box import ROUNDED
from rich.console import RenderableType
from rich.panel import Panel
from rich.text import Text

from run_benchmarks.display.lines import metric_text
from run_benchmarks.display.node_rows import node_rows, power_text
from run_benchmarks.display.progress import Progress
from run_benchmarks.display.rows import Row, Style, drawn, fitted
from run_benchmarks.display.search_rows import search_rows
from utils.numbers import duration
from utils.text_files import one_line

WIDEST = 120
BORDER_WIDTH, BORDER_LINES = 4, 2
LEAST_WIDTH = BORDER_WIDTH + 10
# Below the panel the cursor needs a line, and above it a line of the log should be seen.
SPARE_LINES = 2
# The cursor waits behind the panel: there is room for the `^C` that a terminal writes there.
SPARE_COLUMNS = 2
LEAST_LINES = BORDER_LINES + 3


def round_panel(progress: Progress, width: int, height: int, style: Style) -> RenderableType:
    """The round, smaller than a terminal of `width` x `height`; very low ones get no border."""
    width, lines = min(width - SPARE_COLUMNS, WIDEST), max(1, height - SPARE_LINES)
    if lines < LEAST_LINES or width < LEAST_WIDTH:
        return _joined(drawn(figure_rows(progress)[:lines], max(1, width), style))
    inner = width - BORDER_WIDTH
    rows = figure_rows(progress)[: lines - BORDER_LINES - 1]
    rows += node_rows(progress, lines - BORDER_LINES - len(rows))
    return Panel(
        _joined(drawn(rows, inner, style)),
        title=Text(fitted(one_line(title(progress)), width - 6, style), "bold default"),
        title_align="left",
        box=ASCII_BOX if style.ascii_only else ROUNDED,
        border_style="bright_black",
        width=width,
    )


def title(progress: Progress) -> str:
    """Which round it is."""
    node = progress.nodes[0]
    return f"{node.case.settings.name}, round {node.round} of {node.case.settings.repeat}"


def figure_rows(progress: Progress) -> list[Row]:
    """What the round has come to, the most important row first."""
    rows, now = [_stage_row(progress), *_cap_row(progress)], progress.training.search.now()
    if now:
        rows += search_rows(progress, now)
    elif progress.measures:
        rows += [Row(name, words=outcome) for name, outcome in progress.operations]
    else:
        rows += [*_metric_rows(progress), *_course_rows(progress)]
    power = power_text(progress.nodes, progress.powers())
    return [*rows, Row("power", power)] if power and len(progress.nodes) > 1 else rows


def _stage_row(progress: Progress) -> Row:
    stages = set(progress.stages.values())
    stage = stages.pop() if len(stages) == 1 else progress.stages[progress.nodes[0]]
    phase = progress.training.phase
    words = f"{stage}: {phase}" if stage == "train" and phase else stage
    return Row("stage", f"{duration(progress.elapsed_s)} so far", words)


def _cap_row(progress: Progress) -> list[Row]:
    cap, left = progress.to_cap(), progress.training.seconds_left()
    if cap is None:
        return []
    part, what, text = cap
    if progress.measures:
        return [Row(what, text, part=part)]
    if left is not None and progress.training.phase == "training":
        text += f", at most {duration(left)} left"
    return [Row(what, text, part=part)]


def _metric_rows(progress: Progress) -> list[Row]:
    """The way to the target, and the course of the metric once it has one."""
    state = progress.training
    if state.target is None:
        return []
    beside = "" if progress.start is None else f", from {progress.start:.4f}"
    if state.is_target_met:
        beside = f", met at step {state.evaluated_step}"
    way = Row(state.metric_name or "metric", metric_text(state) + beside, part=progress.to_target())
    return [way, Row("", course=progress.metric)] if len(progress.metric.points) > 1 else [way]


def _course_rows(progress: Progress) -> list[Row]:
    state, rows = progress.training, []
    if state.loss is not None:
        rows.append(Row("loss", f"{state.loss:.4f}", course=progress.loss))
    if state.samples_per_second is not None:
        rows.append(Row("samples/s", f"{state.samples_per_second:,.1f}", course=progress.rate))
    return rows


def _joined(lines: Sequence[Text]) -> Text:
    return Text("\n", no_wrap=True, overflow="crop").join(lines)
