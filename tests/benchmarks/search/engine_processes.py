"""Controllers and workers as processes of their own, ended with the test."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.search.client import Place
from benchmarks.search.controller.settings import SearchSettings
from benchmarks.search.protocol import encode
from tests.ports import free_port
from utils.case_form import ROLES_TOKEN
from utils.events import Event, read_events
from utils.roles import ADDRESS, SESSION, START, WORKER, worker_token

ROOT = Path(__file__).resolve().parents[3]
PATIENCE_S = 120.0
SECRET = "a-token-of-this-run-alone"


def wait_until(condition: Callable[[], object], what: str) -> None:
    """Wait for a state."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, f"never: {what}"
        time.sleep(0.05)


def environment_with(variables: dict[str, str]) -> dict[str, str]:
    """Of a process that finds both trees."""
    return {**os.environ, **variables, "PYTHONPATH": f"{ROOT / 'training'}{os.pathsep}{ROOT}"}


@dataclass
class Engine:
    """A search's processes, and where they are."""

    folder: Path
    settings: SearchSettings
    port: int = field(default_factory=free_port)
    living: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def log(self) -> Path:
        """What the controller prints."""
        return self.folder / "controller.out.log"

    def controller(self, most_bytes: int = resource.RLIM_INFINITY) -> subprocess.Popen[bytes]:
        """A controller, which goes on with what the folder has; no file of it grows larger than `most_bytes`."""
        module = "tests.benchmarks.search.made_controller"
        words = [str(self.folder), str(self.port), SECRET, encode(self.settings).decode()]
        return self._start(["-m", module, *words], self.log, {}, most_bytes)

    def worker(self, number: int, epoch_s: float, start: int = 1) -> subprocess.Popen[bytes]:
        """A worker whose epochs take so long."""
        variables = {
            ADDRESS: f"127.0.0.1:{self.port}",
            ROLES_TOKEN: worker_token(SECRET, number),
            WORKER: str(number),
            SESSION: f"{number:032x}",
            START: str(start),
            "NODE_RANK": str(number),
        }
        words = ["-m", "tests.benchmarks.search.made_worker", str(epoch_s)]
        return self._start(words, self.folder / f"worker{number}.log", variables)

    def place(self, worker: int = 0, session: str = "") -> Place:
        """Where a client of the test is."""
        token = worker_token(SECRET, worker)
        return Place("127.0.0.1", self.port, token, worker, session or f"{worker:032x}", 1, worker)

    def events(self, name: str = "") -> list[Event]:
        """What the controller's log tells, behind its last start."""
        if not self.log.exists():
            return []
        events = read_events(self.log)
        starts = [place for place, event in enumerate(events) if event.name == "SEARCH_START"]
        return [event for event in events[starts[-1] if starts else 0 :] if name in ("", event.name)]

    def wait_for(self, name: str, count: int = 1) -> list[Event]:
        """So many events of a name."""
        wait_until(lambda: len(self.events(name)) >= count, f"{count} of {name}")
        return self.events(name)

    def _start(
        self, words: list[str], log: Path, variables: dict[str, str], most_bytes: int = resource.RLIM_INFINITY
    ) -> subprocess.Popen[bytes]:
        limits = (most_bytes, resource.RLIM_INFINITY)
        environment = environment_with(variables)
        with log.open("ab") as file:
            process = subprocess.Popen(
                [sys.executable, *words],
                env=environment,
                stdout=file,
                stderr=subprocess.STDOUT,
                cwd=ROOT,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limits),
            )
        self.living.append(process)
        return process


@contextmanager
def running(folder: Path, settings: SearchSettings) -> Iterator[Engine]:
    """An engine without processes yet; all that it has started have ended behind it."""
    engine = Engine(folder, settings)
    try:
        yield engine
    finally:
        for process in engine.living:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait()
