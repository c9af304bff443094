"""What all rounds of a run share, and how a run is interrupted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field, replace
from pathlib import Path
from secrets import token_urlsafe
from typing import Any, TypeVar

from run_benchmarks.display.base import Display
from run_benchmarks.hosts import open_allocator
from run_benchmarks.hosts.base import Allocator
from run_benchmarks.hosts.fixed import Opener
from run_benchmarks.images import open_image_files, open_image_store
from run_benchmarks.images.files import ImageFiles
from run_benchmarks.images.store import ImageStore
from run_benchmarks.journal import Journal
from run_benchmarks.names import JOURNAL, HostPaths, RunId, host_paths
from run_benchmarks.plan.records import Plan
from run_benchmarks.results.folder import RoundKey
from run_benchmarks.results.provenance import Harness
from run_benchmarks.results.search.places import Places
from run_benchmarks.runtimes import open_runtime
from run_benchmarks.runtimes.base import Runtime
from run_benchmarks.stages.checks import Check
from run_benchmarks.stages.tree import Tree, tree_of
from run_benchmarks.transports import LOCALHOST
from run_benchmarks.transports.base import Transport
from run_benchmarks.transports.local import LocalTransport
from utils.roles import worker_token

T = TypeVar("T")
CANCEL_GRACE_S = 5.0


class Interruption(asyncio.Event):
    """Set once the run is to end before its time, and never cleared. by: who or what asked for it."""

    by = ""

    def ask(self, by: str) -> None:
        """Ask for the end of the run."""
        self.by = by
        self.set()


@dataclass(frozen=True)
class Session:
    """A run while it goes on. `interrupt` is set by what ends the run before its time.

    hurried: set by a further such signal; what can be done later looks at it.
    signalled: set by Ctrl-C and its like, not by `run.py stop`: hosts that a round had are waited for no longer.
    checks: host -> what its preflight gave; hosts that are known late are added as they come.
    unclean: hosts on which something of the run may be left.
    kept: node folders that stay on their hosts, as not all that lies in them was collected.
    stranded: of rounds whose hosts keep nothing, and were not given back, as the disk has no room for what lies there:
        until when they are there.
    unwritten: rounds that have ended, and whose results could not be written.
    replaced: (vendor, host) -> the spare that has taken its place in that vendor's cases for the rest of the run; the
        vendor is empty where HOSTS has no groups.
    harness: the code that runs; what was deployed of it is `tree`.
    token: a secret of the run, by which the processes of a case with roles know each other.
    pause: lets so many seconds pass.
    here: this machine.
    """

    plan: Plan
    run: RunId
    log_dir: Path
    paths: HostPaths
    tree: Tree
    allocator: Allocator
    runtime: Runtime
    images: ImageStore | ImageFiles | None
    journal: Journal
    display: Display
    interrupt: Interruption
    hurried: asyncio.Event
    checks: dict[str, list[Check]] = field(default_factory=dict)
    signalled: Interruption = field(default_factory=Interruption)
    unclean: set[str] = field(default_factory=set)
    kept: set[str] = field(default_factory=set)
    stranded: list[str] = field(default_factory=list)
    unwritten: set[RoundKey] = field(default_factory=set)
    replaced: dict[tuple[str, str], str] = field(default_factory=dict)
    harness: Harness = field(default_factory=Harness)
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    here: Transport = field(default_factory=LocalTransport)
    token: str = field(default="", repr=False)


def open_session(
    plan: Plan,
    run: RunId,
    log_dir: Path,
    display: Display,
    opener: Opener | None = None,
    journal: Journal | None = None,
) -> Session:
    """A new session of `plan`.

    Args:
        log_dir: the run's result folder, which exists.
        opener: makes the transport to a host (see `open_allocator`).
        journal: that of a run which is taken up again; by default a new one.
    """
    tree = tree_of(plan)
    token = token_urlsafe(32) if any(case.roles for case in plan.cases) else ""
    if token:  # what a task says may hold it, or one that its launcher made of it
        most = max(Places.of(case).workers for case in plan.cases if case.roles)
        made_of_it = [worker_token(token, worker) for worker in range(most)]
        plan = replace(plan, secrets=plan.secrets.and_those([token, *made_of_it]))
    return Session(
        plan=plan,
        run=run,
        log_dir=log_dir,
        paths=host_paths(plan.run, run, tree.digest),
        tree=tree,
        allocator=open_allocator(plan, run.uid, opener),
        runtime=open_runtime(plan.run),
        images=open_image_store(plan.run) or open_image_files(plan.run),
        here=opener(LOCALHOST) if opener else LocalTransport(),
        journal=journal or Journal(log_dir / JOURNAL, plan.secrets),
        display=display,
        interrupt=Interruption(),
        hurried=asyncio.Event(),
        token=token,
    )


def now() -> float:
    """Seconds of a clock that nobody sets, and that goes on while this machine sleeps, as the hosts do."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Interrupted(Exception):  # noqa: N818 - not an error: the user asked for it
    """The user asked the run to end."""


class BrokenOffError(Exception):
    """Work was cancelled, and not by who waits for it: what it ran in, an allocation say, broke off."""


async def unless_interrupted(interrupt: asyncio.Event, work: Coroutine[Any, Any, T]) -> T:
    """As `unless_before`, of an event."""
    return await unless_before(interrupt.wait(), work)


async def unless_before(end: Coroutine[Any, Any, object], work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`; it is cancelled and Interrupted raised as soon as `end` is done.

    Raises:
        BrokenOffError: it was cancelled otherwise. Only a caller that is cancelled itself sees CancelledError.
    """
    task = asyncio.create_task(work)
    asked = asyncio.create_task(end)
    try:
        await asyncio.wait({task, asked}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return result_of(task)
        raise Interrupted
    finally:
        for each in (task, asked):
            each.cancel()
        await asyncio.gather(task, asked, return_exceptions=True)


async def unless_broken_off(work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, which no interrupt ends; where it is cancelled, BrokenOffError."""
    return await unless_interrupted(asyncio.Event(), work)


async def in_time(work: Coroutine[Any, Any, T], limit_s: float) -> T:
    """The result of `work`, which has `limit_s` seconds; then it is cancelled, and left behind where it goes on.

    Raises:
        asyncio.TimeoutError: it was not done in time.
        BrokenOffError: it was cancelled from within.
    """
    task = asyncio.create_task(work)
    try:
        await asyncio.wait({task}, timeout=limit_s)
        if task.done():
            return result_of(task)
        raise asyncio.TimeoutError(f"not done after {limit_s:g} s")
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=CANCEL_GRACE_S)


def result_of(task: asyncio.Task[T]) -> T:
    """What a task that is done has given; BrokenOffError where it was cancelled from within."""
    try:
        return task.result()
    except asyncio.CancelledError as error:
        message = "the work was cancelled from within: the allocation of its hosts may be lost"
        raise BrokenOffError(message) from error
