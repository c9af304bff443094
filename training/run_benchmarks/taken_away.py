"""Work on hosts that a scheduler may take away: it ends by the scheduler's word, not by what follows from it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from run_benchmarks.failures import StageFailed, TakenAway
from run_benchmarks.hosts.granted import AllocationEnd, Tenure
from run_benchmarks.session import result_of
from utils.records import Stage, Verdict

T = TypeVar("T")
# A host is out of reach before the scheduler says why.
WORD_S = 20.0


async def unless_taken_away(
    tenure: Tenure | None, stage: Callable[[], Stage], work: Coroutine[Any, Any, T]
) -> T:
    """The result of `work`, which is ended as soon as its hosts are taken away, or are about to be.

    Args:
        stage: the round's, at that moment.

    Raises:
        TakenAway: they were.
    """
    if tenure is None:
        return await work
    task, ending = asyncio.create_task(work), asyncio.create_task(tenure.end())
    try:
        await asyncio.wait({task, ending}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return await _unless_it_is_why(ending, stage, task)
        raise TakenAway(stage(), ending.result())
    finally:
        for each in (task, ending):
            each.cancel()
        await asyncio.gather(task, ending, return_exceptions=True)


async def _unless_it_is_why(
    ending: asyncio.Task[AllocationEnd], stage: Callable[[], Stage], task: asyncio.Task[T]
) -> T:
    """The result of `task`, which has ended; where it lost a host, the scheduler has a while to say why."""
    try:
        return result_of(task)
    except StageFailed as failed:
        if failed.failure.verdict is Verdict.UNREACHABLE:
            await asyncio.wait({ending}, timeout=WORD_S)
            if ending.done():
                raise TakenAway(stage(), ending.result()) from failed
        raise
