"""Whether a trial's children fail by the weights that they begin with."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from benchmarks.search.controller.refusal import RefuseError
from benchmarks.search.controller.sessions import STARTED_ANEW
from benchmarks.search.protocol import THERE_ARE_NONE
from utils.search.account import Account, Span

# First attempts at children of a trial, or more, that all failed: it may be by the weights that they began with.
SPOILT = 3
# Why one fails that is too large for its chip, whatever it began with: as PyTorch and Python say it.
_OUT_OF_MEMORY = re.compile("MemoryError|out of memory|allocate memory")


class _Attempt(NamedTuple):
    """An attempt at a child that has ended, and where."""

    end_s: float
    start_s: float
    child: int
    worker: int
    has_failed: bool


def refuse_spoilt(account: Account, trial: int, workers: int) -> None:
    """Let a trial's children, in a search of so many workers, begin with fresh weights where its first ones all failed.

    Raises:
        RefuseError: they did, and not at one of several other workers alone, or one of several children alone, which
            may have been the reason; and none that had begun with the weights until then came to its end later.
    """
    attempts = sorted(_attempts(account, trial))
    failures = [each for each in attempts if each.has_failed and account.workers[each.worker].is_there]
    refused_s = _refused_s(failures, least=min(2, workers - 1))
    if refused_s is None or any(not each.has_failed and each.start_s < refused_s for each in attempts):
        return
    raise RefuseError(THERE_ARE_NONE, f"the first children of trial {trial} have failed by them")


def _refused_s(failures: Sequence[_Attempt], least: int) -> float | None:
    """When so many had failed, at so many workers and of so many children, that the next ones began with fresh weights;
    None where they have not."""
    at_workers, of_children = set[int](), set[int]()
    for number, each in enumerate(failures, 1):
        at_workers.add(each.worker)
        of_children.add(each.child)
        if number >= SPOILT and min(len(at_workers), len(of_children)) >= least:
            return each.end_s
    return None


def _attempts(account: Account, trial: int) -> Iterator[_Attempt]:
    """Those at a trial's children whose end says anything of the weights that they began with."""
    for worker, of_worker in account.workers.items():
        for span in of_worker.worked:
            start = span.trial
            if start and start.parent == trial and span.end_s is not None and _says_of_weights(span):
                has_failed = span.state in ("failed", "lost")
                yield _Attempt(span.end_s, span.start_s, start.trial, worker, has_failed)


def _says_of_weights(span: Span) -> bool:
    """Whether an attempt's end says anything of the weights that it began with."""
    if span.state == "failed":
        return not _OUT_OF_MEMORY.search(span.reason)
    return span.state in ("done", "stopped") or (span.state, span.reason) == ("lost", STARTED_ANEW)
