"""A run that goes on, as far as its folder tells: rounds and stages by the journal, the last lines of its log."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from run_benchmarks.display.lines import numbers_of
from run_benchmarks.display.search import numbers_of_search
from run_benchmarks.journal import is_held
from run_benchmarks.names import JOURNAL, RUN_LOG
from run_benchmarks.report.chart import Axis, Chart, Line
from run_benchmarks.results.folder import RunFolder, open_folder
from run_benchmarks.results.load import planned_rounds
from run_benchmarks.results.tables import numbered
from utils.errors import FlagPerfError
from utils.numbers import duration, is_measurable, number_in
from utils.text_files import last_lines_of, one_line, shortened

# Of the log so many lines are shown, with so many characters, and so many are read: those of five hours or more.
MOST_LINES, LONGEST_LINE, MOST_READ = 40, 400, 2000
MOST_ROUNDS = 500
STEP, TARGET = "step", "target"
RATE = "samples/s"
OF_EVERY_CASE = ("loss", RATE)  # what else a line says is the metric
_LINE = re.compile(r"\d[\d:, -]*\t\[INFO\]\t\[(?P<file>[^],]*),\d+\](?P<text>.*)")
_ROUND_STARTS = re.compile(r"case .*, round \d+ of \d+: start")


def progress(path: Path) -> dict[str, Any]:
    """What a page shows of the run in a folder: whether it goes on, its rounds, charts, and the end of its log."""
    folder = open_folder(path)
    lines = _log(path / RUN_LOG)
    return {
        "goes_on": bool(is_held(path / JOURNAL)),
        "rounds": list(_rounds(folder).values())[:MOST_ROUNDS],
        "charts": courses(lines),
        "search": _search(lines),
        "log": [shortened(one_line(line), LONGEST_LINE) for line in lines[-MOST_LINES:]],
    }


def courses(lines: Sequence[str]) -> list[Chart]:
    """The charts of the round that goes on: the numbers of training over its steps, as the log has them."""
    points = list(_points(lines))
    names = dict.fromkeys(name for point in points for name in point if name not in (STEP, TARGET))
    return [_course(name, [point for point in points if name in point]) for name in names]


def _course(name: str, points: Sequence[Mapping[str, float]]) -> Chart:
    axis = Axis(STEP, [point[STEP] for point in points])
    target = None if name in OF_EVERY_CASE else points[-1].get(TARGET)
    levels = [] if target is None else [(TARGET, target)]
    line = Line(name, [point[name] for point in points])
    return Chart(name, "", [axis], [line], levels=levels, is_from_zero=name == RATE)


def _points(lines: Sequence[str]) -> Iterator[dict[str, float]]:
    """What each line of the last round's training says, of each step once, in the order of the steps."""
    points: dict[float, dict[str, float]] = {}
    for line in lines:
        match = _LINE.fullmatch(line)
        if match and _ROUND_STARTS.fullmatch(match["text"]):
            points.clear()
        text = match["text"] if match and match["file"] == "lines.py" else ""
        numbers = numbers_of(text) or numbers_of_search(text)
        if numbers:
            sane = {name: number for name, number in numbers.items() if is_measurable(number)}
            points.setdefault(numbers[STEP], {}).update(sane)
    return (points[step] for step in sorted(points))


def _search(lines: Sequence[str]) -> str:
    """What the last line of a search says that it has come to; empty where there is none."""
    texts = (match["text"] for line in reversed(lines) if (match := _LINE.fullmatch(line)))
    return next((shortened(text, LONGEST_LINE) for text in texts if numbers_of_search(text)), "")


def _rounds(folder: RunFolder) -> dict[tuple[str, int], tuple[str, str, str, str]]:
    """The rounds that were planned: case, number, the last that the journal says of it, and for how long already.

    A round that is run again says at which attempt it is, as in the tables of results.
    """
    rounds = {
        (each.case, each.number): (each.case, str(each.number), "not begun", "")
        for each in planned_rounds(folder)
    }
    failed: Counter[tuple[str, int]] = Counter()
    for entry in folder.journal:
        name, number, event = entry.get("case"), entry.get("round"), entry.get("event")
        if isinstance(name, str) and type(number) is int:
            stage = entry.get("verdict") or entry.get("stage") or "begun"
            since = "" if event == "round_ended" else since_text(number_in(entry, "time"))
            rounds[name, number] = (name, numbered(number, failed[name, number]), str(stage), since)
            failed[name, number] += event == "attempt_ended"
    return rounds


def since_text(time_s: float | None) -> str:
    """How long ago a moment was (seconds since the epoch); empty for None."""
    return "" if time_s is None else duration(max(0.0, time.time() - time_s))


def _log(path: Path) -> list[str]:
    with suppress(FlagPerfError):
        return last_lines_of(path)[-MOST_READ:]
    return []
