"""The workers of a search over its time: when each was there, what it worked on, and where it had nothing to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from utils.numbers import duration, shown
from utils.search.account import Account, OfWorker, Span

MOST_WORKERS, MOST_PARTS = 64, 6_000


@dataclass(frozen=True)
class Part:
    """A part of a worker's row, in percent of the time. kind: `there`, or how its trial ended."""

    kind: str
    about: str
    start: float
    width: float


@dataclass(frozen=True)
class Row:
    """A worker, and how much of its time it had no trial."""

    label: str
    parts: Sequence[Part]
    waiting: str


@dataclass(frozen=True)
class Timeline:
    """All workers that are shown; `left_out` are not."""

    rows: Sequence[Row]
    end: str
    left_out: int


def timeline_of(account: Account, hosts: Sequence[str]) -> Timeline:
    """The rows of a search; `hosts` by node rank."""
    end_s, rows, room = account.end.time_s if account.end else account.now_s, [], MOST_PARTS
    for number, worker in sorted(account.workers.items())[:MOST_WORKERS]:
        parts = list(_parts(worker, end_s))
        room -= len(parts)
        if room < 0:
            break
        node = worker.last.node_rank
        host = hosts[node] if node < len(hosts) else f"node {node}"
        rows.append(Row(f"worker {number} ({host})", parts, _waiting(worker, end_s)))
    return Timeline(rows, duration(end_s), len(account.workers) - len(rows))


def _parts(worker: OfWorker, end_s: float) -> Iterator[Part]:
    for span in worker.there:
        yield _part(span, "there", "there, without a trial", end_s)
    for span in worker.worked:
        number = span.trial.trial if span.trial else 0
        yield _part(span, span.state or "running", f"trial {number}: {span.state or 'running'}", end_s)


def _part(span: Span, kind: str, what: str, end_s: float) -> Part:
    percent = 100 / end_s if end_s else 0.0
    last = end_s if span.end_s is None else min(span.end_s, end_s)
    about = f"{what}, {duration(span.start_s)} to {duration(last)}"
    return Part(kind, about, round(span.start_s * percent, 3), round((last - span.start_s) * percent, 3))


def _waiting(worker: OfWorker, end_s: float) -> str:
    there, worked = worker.there.seconds(end_s), worker.worked.seconds(end_s)
    return f"{shown(max(0.0, there - worked))} s of {duration(there)}"
