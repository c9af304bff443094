"""Runtimes: what a task runs in. `open_runtime` is the way in."""

from __future__ import annotations

from collections.abc import Callable

from run_benchmarks.plan.records import RunSettings
from run_benchmarks.runtimes.apptainer import ApptainerRuntime
from run_benchmarks.runtimes.base import Runtime
from run_benchmarks.runtimes.containers import ContainerRuntime
from run_benchmarks.runtimes.process import ProcessRuntime
from run_benchmarks.runtimes.pyxis import PyxisRuntime

RUNTIMES: dict[str, Callable[[RunSettings], Runtime]] = {
    "docker": ContainerRuntime,
    "process": ProcessRuntime,
    "apptainer": ApptainerRuntime,
    "pyxis": PyxisRuntime,
}


def open_runtime(run: RunSettings) -> Runtime:
    """The runtime that the settings name (RUNTIME in test_conf.py, whose type allows these only)."""
    return RUNTIMES[run.runtime](run)
