"""What the log says of a search while it goes on; `status` shows it, and a live page draws it."""

from __future__ import annotations

import re

from run_benchmarks.reading import parsed
from run_benchmarks.search_state import TERA, SearchNow
from utils.errors import FlagPerfError
from utils.events import Event
from utils.numbers import counted, duration, shown
from utils.search.events import SearchEvent, TrialEnd, Worker

SCORE = "TOP/s"  # tera operations a second
_NUMBER = r"\d{1,400}(?:\.\d{1,400})?(?:e[+-]\d{1,3})?"
_LINE = re.compile(
    rf"search: epoch (?P<step>\d{{1,16}}), trial \d{{1,16}}, best accuracy (?P<accuracy>{_NUMBER}), "
    rf"(?P<score>{_NUMBER}) {SCORE}(, .*)?",
    re.ASCII,
)


def search_line(now: SearchNow) -> str:
    """What a search has come to, in a line."""
    score = "-" if now.score is None else shown(now.score / TERA)
    accuracy = "-" if now.accuracy is None else f"{now.accuracy:.4f}"
    head = f"search: epoch {now.epochs}, trial {now.trials}, best accuracy {accuracy}, {score} {SCORE}"
    return f"{head}, {_workers(now)}, {left_text(now)}"


def left_text(now: SearchNow) -> str:
    """For how long it goes on, or for how long it went."""
    if now.is_over:
        return f"ended after {duration(now.elapsed_s)}"
    return f"at most {duration(now.left_s)} left"


def numbers_of_search(line: str) -> dict[str, float]:
    """What a line of a search says, its epochs as `step`; the inverse of `search_line`. Empty for any other line."""
    match = _LINE.fullmatch(line)
    if match is None:
        return {}
    return {"step": float(match["step"]), "accuracy": float(match["accuracy"]), SCORE: float(match["score"])}


def news_of(event: Event) -> str:
    """What a person wants to know at once: a worker that came or went, a trial that failed; empty for all else."""
    try:
        return _news_of(event)
    except FlagPerfError:  # it is none of a search's events
        return ""


def _news_of(event: Event) -> str:
    if event.name == SearchEvent.WORKER:
        worker = parsed(Worker, event.value, event.name)
        return f"worker {worker.worker} of node {worker.node_rank}: {worker.state}{_because(worker.reason)}"
    if event.name == SearchEvent.TRIAL_END and event.value.get("state") == "failed":
        end = parsed(TrialEnd, event.value, event.name)
        return f"trial {end.trial} failed on worker {end.worker}{_because(end.reason)}"
    return ""


def _workers(now: SearchNow) -> str:
    """Those that are there; of a search that has ended all have left, and were as many as were planned or joined."""
    waiting = "" if now.waiting is None else f", {now.waiting:.1%} of their time without a trial"
    there = "" if now.is_over else f"{now.workers} of "
    return f"{there}{counted(now.planned, 'worker')}{waiting}"


def _because(reason: str) -> str:
    return f" ({reason})" if reason else ""
