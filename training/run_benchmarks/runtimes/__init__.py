"""Runtimes: what a task runs in. `open_runtime` is the way in."""

from __future__ import annotations

from collections.abc import Callable

from run_benchmarks.plan.records import RunSettings
from run_benchmarks.runtimes.base import Runtime
from run_benchmarks.runtimes.containers import ContainerRuntime
from run_benchmarks.runtimes.process import ProcessRuntime
from utils.errors import FlagPerfError, nearest

RUNTIMES: dict[str, Callable[[RunSettings], Runtime]] = {
    "docker": ContainerRuntime,
    "process": ProcessRuntime,
}


def open_runtime(run: RunSettings) -> Runtime:
    """The runtime that the settings name (RUNTIME in test_conf.py).

    Raises:
        FlagPerfError: there is no runtime of this name.
    """
    if run.runtime not in RUNTIMES:
        raise FlagPerfError(
            f"RUNTIME = {run.runtime!r}: no such runtime {nearest(run.runtime, RUNTIMES)}".rstrip(),
            remedy=f"choose one of {', '.join(RUNTIMES)}",
        )
    return RUNTIMES[run.runtime](run)
