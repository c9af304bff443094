"""What all rounds of a run share, and how a run is interrupted and cleaned up."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from run_benchmarks.images.base import ImageStore
from run_benchmarks.journal import Journal
from run_benchmarks.names import HostPaths, RunId
from run_benchmarks.plan.records import Plan
from run_benchmarks.progress import Progress
from run_benchmarks.run_log import LOGGER
from run_benchmarks.runtimes.base import Runtime
from run_benchmarks.stages.deploy import Tree
from run_benchmarks.stages.fan_out import on_all
from run_benchmarks.transports.base import Transport
from utils.errors import FlagPerfError

T = TypeVar("T")


@dataclass(frozen=True)
class Session:
    """A run while it goes on. `interrupt` is set by Ctrl-C and SIGTERM, and never cleared."""

    plan: Plan
    run: RunId
    log_dir: Path
    paths: HostPaths
    tree: Tree
    transports: Mapping[str, Transport]
    runtime: Runtime
    images: ImageStore | None
    journal: Journal
    progress: Progress
    interrupt: asyncio.Event


class Interrupted(Exception):  # noqa: N818 - not an error: the user asked for it
    """The user asked the run to end."""


async def unless_interrupted(interrupt: asyncio.Event, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`; it is cancelled and Interrupted raised as soon as `interrupt` is set."""
    task = asyncio.create_task(work)
    asked = asyncio.create_task(interrupt.wait())
    try:
        await asyncio.wait({task, asked}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise Interrupted
    finally:
        for each in (task, asked):
            each.cancel()
        await asyncio.gather(task, asked, return_exceptions=True)


async def remove_units(session: Session, hosts: Iterable[str]) -> list[str]:
    """Remove every unit of this run from `hosts`; the hosts where that failed. Idempotent."""
    hosts = list(dict.fromkeys(hosts))

    async def remove(host: str) -> None:
        removed = await session.runtime.remove_all(session.transports[host], session.run.uid)
        if removed:
            LOGGER.debug(f"{host}: removed {', '.join(removed)}")

    results = await on_all(hosts, remove)
    failed = [host for host, result in results.items() if isinstance(result, FlagPerfError)]
    for host in failed:
        LOGGER.warning(f"{host}: units of this run may be left there: {results[host]}")
        LOGGER.warning(f"once {host} is back: python3 run_benchmarks/run.py cleanup {session.run.uid}")
    return failed
