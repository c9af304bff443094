"""Rounds of the product itself on this machine: run.py, the process runtime, a copy of training/ with its settings."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from utils.config_files import load_constants
from utils.events import Event, EventName, read_events
from utils.node import rank_log_name

TRAINING = Path(__file__).resolve().parents[1] / "training"
FRAMEWORK = "pytorch"
END_S = 12.0  # before its limit, so that a round that is late ends in order, with its logs
LEAVE_S = 20.0  # for run.py to end what it started once it is told to


class PartError(Exception):
    """A part has no result; says why."""


@dataclass(frozen=True)
class Place:
    """Where rounds run: a folder of this run's own, a vendor and one of its chips.

    The checkout is copied into it, so that settings can be added to the chip's configurations.
    """

    folder: Path
    vendor: str
    chip: str

    @property
    def training(self) -> Path:
        """The copy of training/."""
        return self.folder / "training"

    def prepare(self) -> None:
        """Copy the checkout, without the results in it."""
        shutil.copytree(TRAINING, self.training, ignore=shutil.ignore_patterns("result", "__pycache__"))

    def config_file(self, case: str) -> Path:
        """The configuration of one chip."""
        return self.training / self.vendor / f"{case}-{FRAMEWORK}" / "config" / f"config_{self.chip}x1x1.py"

    def data(self, case: str) -> Path:
        """Where a case's data are made."""
        return self.folder / "data" / case

    def shipped(self, case: str, name: str) -> Any:
        """A setting as the chip's configuration has it, or else the case."""
        base = self.training / "benchmarks" / case / FRAMEWORK / "config" / "_base.py"
        return {**load_constants(base), **load_constants(self.config_file(case))}.get(name)

    def add_settings(self, case: str, settings: Mapping[str, Any]) -> None:
        """Let the configuration end with `settings`, which win."""
        lines = [f"{name} = {value!r}" for name, value in settings.items()]
        with self.config_file(case).open("a", encoding="utf-8") as file:
            file.write("\n".join(["", "# -- of this measurement --", *lines, ""]))

    def run(self, case: str, limit_s: float) -> Round:
        """Run one round of `case` by run.py.

        Raises:
            PartError: it was late, or it failed.
        """
        key = f"{case}:{FRAMEWORK}:{self.chip}:1:1:1"
        home = self.folder / "rounds" / case
        self._write_config(home / "config", key, case, max(limit_s - END_S, 5.0))
        command = [sys.executable, self.training / "run_benchmarks" / "run.py"]
        options = ["--config", home / "config", "--log-path", home / "result"]
        with (home / "output.log").open("w", encoding="utf-8") as log:
            late = _run([*map(str, command), *map(str, options)], limit_s, log)
        results = sorted((home / "result").glob("run*/*/round1/result.json"))
        if not results:
            words = (home / "output.log").read_text(encoding="utf-8").strip().splitlines()[-6:]
            raise PartError(" | ".join([*(["late"] if late else []), *words]) or "run.py said nothing")
        return Round.read(results[-1])

    def _write_config(self, folder: Path, key: str, case: str, seconds: float) -> None:
        folder.mkdir(parents=True)
        data = self.data(case)
        data.mkdir(parents=True, exist_ok=True)
        test = {
            "VENDOR": self.vendor,
            "CASES": {key: str(data)},
            "RUNTIME": "process",
            "PROCESS_PYTHON": sys.executable,
            "FLAGPERF_PATH": str(self.folder / "host"),
            "CASE_DEADLINE_HOURS": seconds / 3600,
            "MIN_FREE_DISK_GIB": 1,
        }
        cluster = {"HOSTS": ["localhost"], "MASTER_PORT": str(_free_port())}
        for name, settings in (("test_conf.py", test), ("cluster_conf.py", cluster)):
            lines = [f"{setting} = {value!r}\n" for setting, value in settings.items()]
            (folder / name).write_text("".join(lines), encoding="utf-8")


@dataclass(frozen=True)
class Round:
    """A round that did its work.

    Attributes:
        figures: FlagPerf's own, by name; None where there is none.
        facts: the FINISHED event.
        notes: of the result.
        steady: samples/s, the median of the intervals between two log lines, the first fifth left out; None
            for a case that does not train.
        config: the configuration that its ranks had, with the precision that "auto" came to.
    """

    figures: Mapping[str, float | None]
    facts: Mapping[str, Any]
    notes: tuple[str, ...]
    steady: float | None
    config: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path) -> Round:
        """Of its result.json.

        Raises:
            PartError: it failed.
        """
        result = json.loads(path.read_text(encoding="utf-8"))
        # Not converged: nothing is meant to be learnt.
        if result["verdict"] not in ("NOT_CONVERGED", "CONVERGED", "MEASURED"):
            failure = result.get("failure") or {}
            message = failure.get("message") or "; ".join(result.get("notes", ())) or "see its logs"
            raise PartError(f"{result['verdict']}: {message} ({path.parent})")
        figures = {name: figure["value"] for name, figure in result["figures"].items()}
        events = read_events(path.parent / "localhost_noderank0" / rank_log_name(0))
        notes = tuple(result["notes"])
        return cls(figures, result["facts"], notes, _steady_rate(events), _configuration(events))


def _configuration(events: Sequence[Event]) -> dict[str, Any]:
    of = {event.name: event.value for event in events}
    started, ready = (of.get(name.value, {}) for name in (EventName.INIT_START, EventName.INIT_END))
    precision = {"precision": ready["precision"]} if "precision" in ready else {}
    return {**started.get("config", {}), **precision}


def _steady_rate(events: Sequence[Event]) -> float | None:
    """By the STEP_END events."""
    rates = [event.value.get("seq/s") for event in events if event.name == EventName.STEP_END.value]
    rates = [rate for rate in rates if isinstance(rate, (int, float))]
    return statistics.median(rates[len(rates) // 5 :]) if rates else None


def _run(command: list[str], limit_s: float, log: Any) -> bool:
    """Run a command; whether it was late, and was ended."""
    process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    try:
        process.wait(limit_s)
        return False
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGTERM)  # run.py ends what it started, and writes what it has
        try:
            process.wait(LEAVE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        return True
    except BaseException:
        process.send_signal(signal.SIGTERM)
        process.wait(LEAVE_S)
        raise


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])
