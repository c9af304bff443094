"""Configuration files are executed in children of a small process, not of a worker that has two frameworks loaded.

A fork copies the tables of its parent's memory: 80 ms and more for a worker, 3 ms for a controller, hundreds of times
each. Tests of the fork itself (plan/test_apart.py), and every test of the command line, have the controller's own.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.popen_fork  # before a test becomes a user who may not read it
import os
from collections.abc import Callable, Iterator
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks.plan import apart

TRAINING = Path(__file__).resolve().parents[1] / "training"


class _Process(ForkServerProcess):
    """Has the environment and the folder of the process that asks for it, as a fork of it would."""

    def __init__(self, target: Callable[..., Any], args: tuple[Any, ...]) -> None:
        super().__init__(target=_in, args=(dict(os.environ), Path.cwd(), target, args))


def _in(environment: dict[str, str], folder: Path, target: Callable[..., Any], args: tuple[Any, ...]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    target(*args)


class _Context(ForkServerContext):
    Process = _Process  # type: ignore[assignment]


@pytest.fixture(scope="session", autouse=True)
def small_parent() -> Iterator[None]:
    """Start it, with what its children need, and put it in place of the fork."""
    multiprocessing.set_forkserver_preload([__name__, "run_benchmarks.plan.vendors"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join((str(TRAINING), str(TRAINING.parent))))
        forkserver.ensure_running()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(apart, "_FORK", _Context())
        yield


@pytest.fixture
def own_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    """The controller's own way, for tests of what a child inherits."""
    monkeypatch.setattr(apart, "_FORK", multiprocessing.get_context("fork"))
