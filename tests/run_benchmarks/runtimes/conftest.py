"""Real units: containers of this machine's engine, and process trees."""

from __future__ import annotations

import asyncio
import os
import sys
import uuid
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from run_benchmarks.names import WORK_FOLDER
from run_benchmarks.plan.records import RunSettings
from run_benchmarks.runtimes import open_runtime
from run_benchmarks.runtimes.apptainer import ApptainerRuntime
from run_benchmarks.runtimes.base import Mount, Runtime, Unit
from run_benchmarks.runtimes.containers import ContainerRuntime
from run_benchmarks.runtimes.image_file import ImageFileRuntime
from run_benchmarks.transports.base import Transport
from run_benchmarks.transports.local import LocalTransport
from tests.fakes import apptainer
from tests.lab import podman, tiny_image
from tests.lab.commands import LabError
from tests.lab.requirements import why_not

T = TypeVar("T")
TRAINING = Path(__file__).resolve().parents[3] / "training"


def settings(folder: Path, **changes: Any) -> RunSettings:
    """Run settings whose files on the host lie in `folder`."""
    plain = RunSettings(
        flagperf_path_host=str(folder),
        flagperf_path_container="/flagperf",
        log_path=folder / "result",
        log_path_container="/logs",
        log_level="info",
        clear_caches=False,
        process_python=sys.executable,
    )
    return replace(plain, **changes)


@dataclass(frozen=True)
class Bench:
    """A runtime on this machine, and a run whose units are removed after the test."""

    runtime: Runtime
    run: str
    folder: Path
    engine: tuple[str, ...] = ("docker",)

    @property
    def in_containers(self) -> bool:
        return isinstance(self.runtime, (ContainerRuntime, ImageFileRuntime))

    def unit(self, script: str, *args: str, name: str = "unit", run: str = "", **changes: Any) -> Unit:
        """A unit that runs a shell script with `args` as $1, $2, ...; its name is unique."""
        plain = Unit(
            name=f"{run or self.run}-{name}",
            labels={"flagperf.run": run or self.run, "flagperf.role": name},
            image=tiny_image.NAME,
            argv=("sh", "-c", script, "script", *args),
            tree=str(TRAINING),
        )
        return replace(plain, **changes)

    def use(self, scenario: Callable[[Transport], Coroutine[Any, Any, T]], timeout: float = 240.0) -> T:
        """The result of `scenario` on this machine; never hangs."""
        return asyncio.run(asyncio.wait_for(scenario(LocalTransport()), timeout))

    def end_of(self, unit: Unit) -> tuple[int, str]:
        """Start the unit and wait for it: its exit code and what it printed.

        A container prints into a file of this machine: what one of Podman's prints right before its end may be
        missing in its engine's log (github.com/containers/conmon/issues/563).
        """
        if not self.in_containers:
            return self.code_of(unit), self.use(lambda t: self.runtime.last_output(t, unit.name))
        output = self.folder / f"{unit.name}.output"
        output.touch()
        output.chmod(0o666)  # the engine's root may be another user
        mount = Mount(str(output), "/output", read_only=False)
        argv = ("sh", "-c", 'exec >/output 2>&1; exec "$@"', "sh", *unit.argv)
        code = self.code_of(replace(unit, argv=argv, mounts=(*unit.mounts, mount)))
        return code, output.read_text().strip()

    def code_of(self, unit: Unit) -> int:
        """Start the unit and wait for it: its exit code."""

        async def scenario(transport: Transport) -> int:
            await self.runtime.start(transport, unit)
            return await self.runtime.wait(transport, unit.name)

        return self.use(scenario)


def need_engine(kind: str = "docker") -> str:
    """The command of an engine that has the tiny image.

    Skip where it does not answer; in CI, where that would hide a hole, fail.
    """
    try:
        command = podman.command() if kind == "podman" else kind
        tiny_image.build(command)
    except (LabError, OSError) as error:
        reason = f"no {kind} on this machine: {error}"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    return command


def bench_of(kind: str, folder: Path) -> Iterator[Bench]:
    engine = "docker" if kind == "process" else need_engine(kind)
    changes = {"runtime": kind} if kind == "process" else {"container_engine": engine}
    runtime = open_runtime(settings(folder, **changes))
    (folder / WORK_FOLDER).mkdir(mode=0o700, exist_ok=True)
    yield from removed_afterwards(
        Bench(runtime, f"test-{uuid.uuid4().hex[:12]}", folder, tuple(engine.split()))
    )


def removed_afterwards(made: Bench) -> Iterator[Bench]:
    """A bench, whose runs' units are removed after the test."""
    runtime = made.runtime
    yield made
    made.use(lambda transport: runtime.remove_all(transport, made.run))
    made.use(lambda transport: runtime.remove_all(transport, f"{made.run}-other"))


@pytest.fixture(params=["docker", "podman", "process", "apptainer"])
def bench(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """Every runtime in turn, containers by every engine; Apptainer is a FAKE."""
    if request.param == "apptainer":
        yield from apptainer_bench(tmp_path, monkeypatch)
    else:
        yield from bench_of(request.param, tmp_path)


def apptainer_bench(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """The runtime of Apptainer, by a FAKE of that (tests/fakes), and an image that is an empty file."""
    if reason := why_not():
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    monkeypatch.setenv("PATH", f"{apptainer.install(folder / 'bin')}:{os.environ['PATH']}")
    runtime = open_runtime(settings(folder, runtime="apptainer"))
    assert isinstance(runtime, ApptainerRuntime)
    image = Path(runtime.image_path(tiny_image.NAME))
    image.parent.mkdir(parents=True)
    image.touch()
    yield from removed_afterwards(Bench(runtime, f"test-{uuid.uuid4().hex[:12]}", folder))


@pytest.fixture(params=["docker", "podman"])
def containers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """The container runtime, by every engine."""
    yield from bench_of(request.param, tmp_path)


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Bench]:
    """The process runtime."""
    yield from bench_of("process", tmp_path)
