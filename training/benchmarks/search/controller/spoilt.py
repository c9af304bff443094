"""Whether a trial's children fail by the weights that they begin with."""

from __future__ import annotations

import re
from itertools import takewhile
from typing import NamedTuple

from benchmarks.search.controller.refusal import RefuseError
from benchmarks.search.controller.sessions import STARTED_ANEW
from benchmarks.search.protocol import THERE_ARE_NONE
from utils.search.account import Account, Span

# First attempts at children of a trial, or more, that all failed: it may be by the weights that they began with.
SPOILT = 3
# Why one fails that is too large for its chip, whatever it began with: as PyTorch and Python say it.
_OUT_OF_MEMORY = re.compile("MemoryError|out of memory|allocate memory")


class _Failure(NamedTuple):
    """A child that failed, or that ended its worker's ranks, and where."""

    child: int
    worker: int


def refuse_spoilt(account: Account, trial: int, workers: int) -> None:
    """Let a trial's children, in a search of so many workers, begin with fresh weights where its first ones all failed.

    Raises:
        RefuseError: they did, and not at one of several other workers alone, or one of several children alone, which
            may have been the reason.
    """
    failures, least = _failed_first(account, trial), min(2, workers - 1)
    at_workers, of_children = {each.worker for each in failures}, {each.child for each in failures}
    if len(failures) >= SPOILT and min(len(at_workers), len(of_children)) >= least:
        raise RefuseError(THERE_ARE_NONE, f"the first children of trial {trial} have failed by them")


def _failed_first(account: Account, trial: int) -> list[_Failure]:
    """Of the first attempts at a trial's children those that failed before one did not, at workers that are there."""
    attempts = (
        (span.start_s, _Failure(span.trial.trial, worker), span)
        for worker, of_worker in account.workers.items()
        for span in of_worker.worked
        if span.trial and span.trial.parent == trial and _says_of_weights(span)
    )
    failed = takewhile(
        lambda each: each[2].state in ("failed", "lost"), sorted(attempts, key=lambda each: each[:2])
    )
    return [failure for _, failure, _ in failed if account.workers[failure.worker].is_there]


def _says_of_weights(span: Span) -> bool:
    """Whether an attempt's end says anything of the weights that it began with."""
    if span.state == "failed":
        return not _OUT_OF_MEMORY.search(span.reason)
    return span.state in ("done", "stopped") or (span.state, span.reason) == ("lost", STARTED_ANEW)
