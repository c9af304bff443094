"""Where a vendor is tried: a copy of `training/` with its folder, in which settings can be added, and its runs."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from run_benchmarks.conformance.folder import configs_of
from run_benchmarks.names import node_folder_name
from run_benchmarks.results.load import load_run
from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.results.telemetry_file import read_telemetry
from utils.errors import FlagPerfError
from utils.events import Event, read_events
from utils.node import rank_log_name
from utils.telemetry.lines import TELEMETRY_FILE
from utils.telemetry.records import Telemetry

HOST = "localhost"
SHARED = ("utils", "benchmarks", "run_benchmarks")
NOT_COPIED = shutil.ignore_patterns("__pycache__", "result", "demo_data", "template", "docker_image")
QUICK_S = 60.0
END_S = 15.0  # before its limit, so that a round that is late ends in order, with its logs
LEAVE_S = 30.0  # for run.py to end what it started once it is told to
MOST_SHOWN = 6  # lines


@dataclass(frozen=True)
class Done:
    """A run of one round that has ended: its result, rank 0's events, what the monitors wrote."""

    folder: Path
    result: RoundResult

    @property
    def node(self) -> Path:
        """The folder of its only node."""
        of_round = self.folder / self.result.case / f"round{self.result.round}"
        return of_round / node_folder_name(HOST, 0)

    def events(self) -> list[Event]:
        """Of rank 0."""
        return read_events(self.node / rank_log_name(0))

    def values(self, name: str) -> list[Mapping[str, Any]]:
        """Of each of rank 0's events of a name."""
        return [event.value for event in self.events() if event.name == name]

    def telemetry(self) -> Telemetry:
        """What was sampled beside it."""
        return read_telemetry(self.node / TELEMETRY_FILE)


@dataclass(frozen=True)
class Sandbox:
    """A folder of the trial's own; `python` is the one that has the framework."""

    folder: Path
    vendor: str
    python: Path

    @property
    def training(self) -> Path:
        """The copy of `training/`."""
        return self.folder / "training"

    @property
    def vendor_folder(self) -> Path:
        """The vendor's in it."""
        return self.training / self.vendor

    @property
    def tools(self) -> Path:
        """Programs that are before all others on the PATH of whatever runs here."""
        return self.folder / "tools"

    @property
    def environment(self) -> dict[str, str]:
        """Of whatever runs here."""
        return {**os.environ, "PATH": f"{self.tools}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}

    def prepare(self, vendor: Path) -> None:
        """Copy what a run of this vendor's cases needs."""
        self.tools.mkdir(parents=True)
        for name in (*SHARED, vendor.name):
            shutil.copytree(vendor.parent / name, self.training / name, ignore=NOT_COPIED)
        for name in (
            "cluster_conf.py",
            "test_conf.py",
            "machine_conf.py",
        ):  # the user's, and may hold secrets
            (self.training / "run_benchmarks" / "config" / name).unlink(missing_ok=True)

    def config_of(self, case: str, chip: str, nproc: int) -> Path | None:
        """The chip's configuration of a case on one host with the fewest devices, as that of `nproc`; None for none."""
        names = {size: f"config_{chip}x1x{size}.py" for size in (1, 2, 4, 8, 16)}
        own = {path.name: path for path in configs_of(self.vendor_folder) if path.parents[1].name == case}
        nearest = next((own[name] for name in names.values() if name in own), None)
        if nearest is None:
            return None
        wanted = nearest.with_name(f"config_{chip}x1x{nproc}.py")
        if wanted != nearest:
            shutil.copy(nearest, wanted)
        return wanted

    def run_module(self, module: str, *words: str, limit_s: float) -> subprocess.CompletedProcess[str]:
        """A module of the copy, by the Python that has the framework.

        Raises:
            FlagPerfError: it is late.
        """
        argv = [str(self.python), "-m", module, *words]
        environment = {**self.environment, "PYTHONPATH": str(self.training)}
        try:
            return subprocess.run(
                argv,
                cwd=self.training,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=limit_s,
            )
        except subprocess.TimeoutExpired as error:
            raise FlagPerfError(
                f"{module} did not end within {limit_s:g} s", where=shlex.join(argv)
            ) from error

    def run(self, key: str, data: Path, limit_s: float, *options: str) -> Done:
        """One round of the case `key`, by run.py itself.

        Raises:
            FlagPerfError: it left no result.
        """
        home, results = self.folder / "config", self.folder / "result"
        self._write_config(home, key, data, max(limit_s - END_S, END_S))
        before = set(results.glob("run*"))
        argv = [sys.executable, str(self.training / "run_benchmarks" / "run.py")]
        argv += ["--config", str(home), "--log-path", str(results), *options]
        log = self.folder / "output.log"
        late = _ended_late(argv, self.environment, log, limit_s)
        new = sorted(set(results.glob("run*")) - before)
        rounds = load_run(new[0]).results if new else ()
        if not rounds:
            words = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-MOST_SHOWN:]
            what = f"run.py did not end within {limit_s:g} s" if late else "run.py left no result"
            raise FlagPerfError(" | ".join([what, *words]), where=str(log))
        return Done(new[0], rounds[0])

    def _write_config(self, home: Path, key: str, data: Path, seconds: float) -> None:
        home.mkdir(exist_ok=True)
        test = {
            "VENDOR": self.vendor,
            "CASES": {key: str(data)},
            "RUNTIME": "process",
            "PROCESS_PYTHON": str(self.python),
            "FLAGPERF_PATH": str(self.folder / "host"),
            "CHECKPOINT_PATH": str(self.folder / "checkpoints"),
            "CASE_DEADLINE_HOURS": seconds / 3600,
            "MONITOR_INTERVAL": 0.5,
            "MIN_FREE_DISK_GIB": 0,
        }
        write_settings(home / "test_conf.py", test)
        write_settings(home / "cluster_conf.py", {"HOSTS": [HOST], "MASTER_PORT": str(_free_port())})


def write_settings(file: Path, settings: Mapping[str, Any]) -> None:
    """Let a file hold them."""
    file.write_text("".join(f"{name} = {value!r}\n" for name, value in settings.items()), encoding="utf-8")


def add_settings(file: Path, settings: Mapping[str, Any]) -> None:
    """Let a file end with them: they win."""
    lines = [f"{name} = {value!r}" for name, value in settings.items()]
    with file.open("a", encoding="utf-8") as stream:
        stream.write("\n".join(["", "# -- of this trial --", *lines, ""]))


def ask_output(*argv: Path | str) -> str:
    """What a short command prints.

    Raises:
        FlagPerfError: it does not start, fails, or is late.
    """
    try:
        done = subprocess.run(
            [str(word) for word in argv],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=QUICK_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise FlagPerfError(f"it does not answer: {error}", where=str(argv[0])) from error
    if done.returncode:
        words = done.stderr.strip() or done.stdout.strip()
        raise FlagPerfError(f"it ended with {done.returncode}: {words}", where=shlex.join(map(str, argv)))
    return done.stdout.strip()


def _ended_late(argv: Sequence[str], environment: Mapping[str, str], log: Path, limit_s: float) -> bool:
    """Run a command to its end; whether it was late, and was ended."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            argv, env=dict(environment), stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        process.wait(limit_s)
        return False
    except subprocess.TimeoutExpired:
        return True
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    steps: tuple[Callable[[], None], ...] = (lambda: process.send_signal(signal.SIGTERM), process.kill)
    for step in steps:
        if process.poll() is not None:
            return
        step()  # SIGTERM: run.py ends what it started, and writes what it has
        try:
            process.wait(LEAVE_S)
        except subprocess.TimeoutExpired:
            continue


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])
