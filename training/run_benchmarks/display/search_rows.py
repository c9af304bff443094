"""The rows of a panel that shows a search."""

from __future__ import annotations

from collections.abc import Iterator

from run_benchmarks.display.progress import Progress
from run_benchmarks.display.rows import Row
from run_benchmarks.display.search import SCORE, left_text
from run_benchmarks.search_state import TERA, SearchNow
from utils.numbers import shown


def search_rows(progress: Progress, now: SearchNow) -> Iterator[Row]:
    """Rows of the panel, the most important first."""
    yield Row("search", left_text(now), part=now.part)
    others = [f"{count} {state}" for state, count in now.ended.items() if state not in ("done", "stopped")]
    yield Row("trials", ", ".join([f"{now.trials}, {now.running} under way", *others]))
    if now.accuracy is not None and now.score is not None:
        yield Row("accuracy", f"{now.accuracy:.4f} in trial {now.trial}", course=progress.metric)
        yield Row("score", f"{shown(now.score / TERA)} {SCORE}", course=progress.rate)
    waiting = "" if now.waiting is None else f", {now.waiting:.1%} waiting"
    there = "" if now.is_over else f"{now.workers} of "
    yield Row("workers", f"{there}{now.planned}{waiting}")
