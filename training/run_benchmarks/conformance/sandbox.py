"""Where a vendor is tried: a copy of `training/` with its folder, in which settings can be added, and its runs."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from run_benchmarks.conformance.records import CheckResult, failed
from run_benchmarks.names import node_folder_name
from run_benchmarks.plan.secrets import by_name_alone
from run_benchmarks.plan.source_code import text_of
from run_benchmarks.results.load import load_run
from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.results.telemetry_file import read_telemetry
from utils.bounded_run import TooMuchOutputError, run_bounded
from utils.config_files import config_name
from utils.errors import FlagPerfError
from utils.events import Event, read_events
from utils.node import rank_log_name
from utils.records import Failure
from utils.telemetry.lines import TELEMETRY_FILE
from utils.telemetry.records import Telemetry

HOST = "localhost"
SHARED = ("utils", "benchmarks", "run_benchmarks")
USERS = ("cluster_conf.py", "test_conf.py", "machine_conf.py")  # may hold secrets
NOT_COPIED = shutil.ignore_patterns(
    "__pycache__", "*.pyc", ".*", "result", "demo_data", "template", "docker_image", *USERS
)
QUICK_S = 60.0  # of a command that asks something
END_S = 15.0  # before its limit, so that a round that is late ends in order, with its logs
LEAVE_S = 30.0  # for run.py to end what it started once it is told to
TIMED_OUT = (124, 137)  # of timeout(1): it ended the command, or killed it
MOST_SHOWN = 6  # lines
MOST_PRINTED = 2**24  # bytes, of a module: a vendor's library may warn of a thing in every call
_OF_TRACEBACK = re.compile(r'File "([^"]*)", line (\d+)')
EXTERN = "/extern/"


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

    def config_for(self, shipped: Path, chip: str, nproc: int) -> Path:
        """The copy's configuration of a chip for `nproc` devices of one host, made of a shipped one of the case."""
        config = self.vendor_folder.joinpath(*shipped.parts[-3:]).with_name(
            f"{config_name(chip, 1, nproc)}.py"
        )
        if config.name != shipped.name:
            shutil.copy(shipped, config)
        return config

    def run_module(self, module: str, *words: str, limit_s: float) -> subprocess.CompletedProcess[str]:
        """A module of the copy, by the Python that has the framework.

        Raises:
            FlagPerfError: it is late, or prints too much.
        """
        argv = [str(self.python), "-m", module, *words]
        environment = {**self.environment, "PYTHONPATH": str(self.training)}
        try:
            return run_bounded(
                argv, timeout_s=limit_s, most=MOST_PRINTED, cwd=str(self.training), env=environment
            )
        except subprocess.TimeoutExpired as error:
            message = f"{module} did not end within {limit_s:g} s"
            raise FlagPerfError(message, where=shlex.join(argv)) from error
        except TooMuchOutputError as error:
            message = f"{module} printed more than {MOST_PRINTED} bytes, and was killed"
            raise FlagPerfError(message, where=shlex.join(argv)) from error

    def run(self, key: str, data: Path, limit_s: float, *options: str) -> Done:
        """One round of the case `key`, by run.py itself.

        Raises:
            FlagPerfError: it left no result.
        """
        home, results = self.folder / "config", self.folder / "result"
        self._write_config(home, key, data, max(limit_s - END_S, END_S))
        before = set(results.glob("run*"))
        # told to end, run.py ends what it started, and writes what it has
        argv = ["timeout", "--foreground", f"--kill-after={LEAVE_S}", str(limit_s), sys.executable]
        argv += [
            str(self.training / "run_benchmarks" / "run.py"),
            "--config",
            str(home),
            "--log-path",
            str(results),
        ]
        log = self.folder / "output.log"
        with log.open("wb") as output:
            done = subprocess.run([*argv, *options], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                                  stdout=output, stderr=subprocess.STDOUT)  # fmt: skip
        new = sorted(set(results.glob("run*")) - before)
        rounds = load_run(new[0], by_name_alone).results if new else ()
        if not rounds:
            words = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-MOST_SHOWN:]
            late = done.returncode in TIMED_OUT
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


def smallest_config(vendor: Path, case: str, chip: str) -> Path | None:
    """The chip's configuration of a case on one host with the fewest devices; None for none."""
    paths = [vendor / case / "config" / f"{config_name(chip, 1, size)}.py" for size in (1, 2, 4, 8, 16)]
    return next(filter(Path.is_file, paths), None)


def failure_of(done: Done) -> Iterator[CheckResult]:
    """What a run failed by, if it did."""
    if failure := done.result.failure:
        yield failed(f"{failure.message}: {last_words(done.folder, failure)}", done.node, failure.remedy)


def last_words(run: Path, failure: Failure) -> str:
    """The end of what a failed round of a run left as evidence, behind the vendor's own line that led there, if any."""
    evidence = " | ".join(failure.evidence.strip().splitlines()[-3:])
    text = text_of(run / failure.file) if failure.file else ""
    own = _lines_of_extern(text) or _lines_of_extern(failure.evidence)
    return f"{own[-1]}: {evidence}" if own else evidence


def _lines_of_extern(text: str) -> list[str]:
    """The lines of the vendor's own code that tracebacks in a text name, as `extern/FILE:LINE`."""
    places = ((path.rpartition(EXTERN), line) for path, line in _OF_TRACEBACK.findall(text))
    return [f"{(found + name).lstrip('/')}:{line}" for (_, found, name), line in places if found]


def write_settings(file: Path, settings: Mapping[str, Any]) -> None:
    """Let a file hold them."""
    file.write_text("".join(f"{name} = {value!r}\n" for name, value in settings.items()), encoding="utf-8")


def add_settings(file: Path, settings: Mapping[str, Any]) -> None:
    """Let a file end with them: they win."""
    lines = [f"{name} = {value!r}" for name, value in settings.items()]
    with file.open("a", encoding="utf-8") as stream:
        stream.write("\n".join(["", "# -- of this trial --", *lines, ""]))


def end_left(folder: Path) -> None:
    """End each Python whose command names the trial's folder: none outlives it, its folder gone or not."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has ended meanwhile, or is another user's
            command = path.read_bytes()
            if b"python" in command.partition(b"\0")[0] and str(folder).encode() in command:
                os.kill(int(path.parent.name), signal.SIGKILL)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])
