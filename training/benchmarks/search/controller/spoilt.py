"""Whether a trial's children fail by the weights that they begin with."""

from __future__ import annotations

import re
from itertools import takewhile

from benchmarks.search.controller.refusal import RefuseError
from benchmarks.search.protocol import THERE_ARE_NONE
from utils.search.account import Account
from utils.search.events import TrialEnd

# First children of a trial, or more, that all failed: it may be by the weights that they began with.
SPOILT = 3
# Why one fails that is too large for its chip, whatever it began with: as PyTorch and Python say it.
_OUT_OF_MEMORY = re.compile("MemoryError|out of memory|allocate memory")


def refuse_spoilt(account: Account, trial: int, workers: int) -> None:
    """Let a trial's children, in a search of so many workers, begin with fresh weights where its first ones all failed.

    Raises:
        RefuseError: they did, and not at one of several other workers alone, which may have been the reason.
    """
    failed_at = _failed_first(account, trial)
    if len(failed_at) >= SPOILT and len(set(failed_at)) >= min(2, workers - 1):
        raise RefuseError(THERE_ARE_NONE, f"the first children of trial {trial} have failed by them")


def _failed_first(account: Account, trial: int) -> list[int]:
    """At which workers, of those that are there yet, the first children of a trial failed, before one did not."""
    children = (each for each in account.trials.values() if each.start.parent == trial)
    ended = (each for each in children if each.end and _says_of_weights(each.end))
    failed = takewhile(lambda each: each.state == "failed", ended)
    return [each.start.worker for each in failed if account.workers[each.start.worker].is_there]


def _says_of_weights(end: TrialEnd) -> bool:
    """Whether a trial's end says anything of the weights that it began with."""
    if end.state == "failed":
        return not _OUT_OF_MEMORY.search(end.reason)
    return end.state in ("done", "stopped")
