"""The hosts of a round: they are granted and, by a scheduler, taken away; then its word is why the round ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from typing import Any, TypeVar

from run_benchmarks.failures import StageFailed, TakenAway, failure_on
from run_benchmarks.hosts.base import (
    Allocation,
    AllocationError,
    Allocator,
    Host,
    NoAnswerError,
    NotTakenUpError,
    WaitEndedError,
)
from run_benchmarks.hosts.granted import AllocationEnd, Tenure
from run_benchmarks.names import nodes_of
from run_benchmarks.round_state import RoundState
from run_benchmarks.session import Interrupted, Session, result_of, unless_before
from run_benchmarks.transports.out_of_reach import OutOfReach
from utils.records import Stage, Verdict

T = TypeVar("T")
# A host is out of reach before the scheduler says why.
WORD_S = 20.0
# Those of a round that is taken up are had within a moment where their scheduler answers: it is ended in order then.
LAST_WAIT_S = 5.0


async def granted(session: Session, state: RoundState, held: AsyncExitStack) -> Allocation:
    """Hosts for a round, until `held` is closed: those that it had where it is taken up.

    Raises:
        StageFailed: there are none.
        NotTakenUpError: nobody can tell whether it still has its hosts, or a signal has ended the waiting for them.
    """
    work = _granted(session.allocator, state, held)
    if not state.is_taken_up:
        return await work

    async def signalled() -> None:
        await session.signalled.wait()
        await asyncio.sleep(LAST_WAIT_S)

    try:
        return await unless_before(signalled(), work)
    except Interrupted as error:
        raise WaitEndedError(state.case.settings.name, session.signalled.by) from error


async def _granted(allocator: Allocator, state: RoundState, held: AsyncExitStack) -> Allocation:
    case = state.case
    try:
        allocation = await held.enter_async_context(allocator.acquire(case, state.allocation))
    except AllocationError as error:
        if state.is_taken_up and isinstance(error, NoAnswerError):
            message = f"what became of the hosts of {case.settings.name} is not known: {error.message}"
            remedy = error.remedy or "see that the scheduler answers here"
            remedy = (
                f"{remedy}; then do this again: the run was left as it is, and its tasks may go on meanwhile"
            )
            raise NotTakenUpError(message, where=error.where, remedy=remedy) from error
        if error.end:
            raise TakenAway(Stage.ACQUIRE, error.end) from error
        raise StageFailed(failure_on(error.where, Stage.ACQUIRE, error)) from error
    names = {host.name for host in allocation.hosts}
    if not len(names) == len(allocation.hosts) == case.settings.nnodes:
        message = f"hosts granted: {len(names)}, nodes of the case: {case.settings.nnodes}"
        raise StageFailed(failure_on("", Stage.ACQUIRE, AllocationError(message)))
    return allocation


async def revisited(
    session: Session, state: RoundState, hosts: Sequence[Host], held: AsyncExitStack
) -> tuple[Host, ...]:
    """A round's hosts after they were taken away: those that can be had again are in reach until `held` is closed.

    The others have their places beside them, so that the logs come of those that are in reach.

    Args:
        hosts: none where the round was taken up after that.
    """
    names = state.case.hosts
    session.unclean.update(names)
    again = await held.enter_async_context(session.allocator.revisit(names))
    by_name = {host.name: host for host in (*hosts, *again)}
    state.lost = state.lost.union(names) - {host.name for host in again}
    state.nodes = state.nodes or nodes_of(state.case, state.number)
    keeps = session.allocator.keeps
    gone = {name: Host(name, name, OutOfReach(name, keeps=keeps)) for name in names if name not in by_name}
    return tuple((by_name | gone)[name] for name in names)


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
