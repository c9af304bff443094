"""Runs on two hosts to which faults happen: starting them, and what must be so after every one of them."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from run_benchmarks.plan.secrets import by_name_alone
from run_benchmarks.results.load import load_run
from tests.lab.lab import Lab
from tests.live_files import any_says
from tests.run_benchmarks.e2e.harness import Bench, Ended, containers, ending, run_folder, wait_until
from tests.run_benchmarks.e2e.pair import write_pair
from tests.run_benchmarks.faults.seen import Seen

CASE = "pair:pytorch:cpu:2:1:1"
TRAINING_GOES_ON = "samples/s"
MADE_AT = re.compile(r"the fault is made at ([\d.]+)")


@dataclass(frozen=True)
class Pair:
    """A case of two ranks, each on a host of its own, and how its run is configured."""

    lab: Lab
    bench: Bench
    data: Path

    def configure(self, steps: int, at_step: str = "", **settings: object) -> None:
        """Let the ranks do `steps` steps, ten a second, and in each what `at_step` says."""
        write_pair(self.bench.training, "cpu", "cpu", steps, at_step)
        self.bench.test(**{"CASES": {CASE: str(self.data)}, **settings})

    @contextmanager
    def training(self) -> Iterator[subprocess.Popen[str]]:
        """A run that trains."""
        process = self.bench.start()
        with ending(self.bench, process):
            self.bench.wait_for_log(process, TRAINING_GOES_ON)
            yield process

    @contextmanager
    def at_stage(self, stage: str) -> Iterator[subprocess.Popen[str]]:
        """A run whose round has come to a stage."""
        process = self.bench.start()
        with self.going_on(process):
            self.wait_for_stage(process, stage)
            yield process

    @contextmanager
    def going_on(self, process: subprocess.Popen[str]) -> Iterator[None]:
        """A run that is ended in order where the test fails meanwhile."""
        with ending(self.bench, process):
            yield

    def wait_for_file(self, process: subprocess.Popen[str], name: str, text: str) -> None:
        """Wait until `text` stands in a file of the result tree."""

        def there() -> bool:
            return any_says(text, self.bench.folder / "result", f"**/{name}")

        wait_until(there, lambda: process.poll() is None, f"{text!r} in {name}")

    def wait_for_stage(self, process: subprocess.Popen[str], stage: str) -> Path:
        """Wait until the journal says that the round is at `stage`; the run's folder."""

        def there() -> Path | None:
            journals = list((self.bench.folder / "result").glob("run*/journal.jsonl"))
            return journals[-1].parent if journals and stage in stages_in(journals[-1]) else None

        found: Path = wait_until(there, lambda: process.poll() is None, f"stage {stage}")
        return found

    def assert_in_order(self, ended: Ended, *hosts: int) -> dict[str, Any]:
        """Nothing is left on `hosts` (by default both), and what stands in the tree can be read; the only round."""
        assert ended.folder is not None, ended.output
        assert "Traceback" not in ended.output, ended.output
        for host in hosts or (1, 2):
            assert containers(self.lab, host) == ""
            assert run_folder(self.lab, host, ended.uid()) == ""
        load_run(ended.folder, by_name_alone)
        (result,) = ended.rounds()
        return dict(result)

    def assert_whole(self, ended: Ended, steps: int) -> dict[str, Any]:
        """The run is in order, its round has all its steps in the logs of both ranks, and nothing is doubtful."""
        result = self.assert_in_order(ended)
        assert ended.folder is not None and ended.code == 0, ended.output
        for rank in (0, 1):
            (log,) = ended.folder.glob(f"{CASE}/round1/h{rank + 1}_noderank{rank}/rank{rank}.out.log")
            heard = re.findall(r"^step (\d+) of rank", log.read_text(), re.MULTILINE)
            assert [*map(int, heard)] == [*range(1, steps + 1)]
        return result


def stages_in(journal: Path) -> dict[str, float]:
    """The stages that a journal tells of, and when they began; a line that is being written is left out."""
    lines = journal.read_text(encoding="utf-8").splitlines(keepends=True)
    entries = [json.loads(line) for line in lines if line.endswith("\n")]
    return {entry["stage"]: entry["time"] for entry in entries if entry["event"] == "stage"}


def made_in_rank(seen: Seen, folder: Path | None) -> None:
    """Tell `seen` when a rank of a run made the fault itself, by its own log."""
    assert folder is not None
    texts = [path.read_text(errors="replace") for path in folder.glob("*/round1/*/rank*.out.log")]
    (at,) = [match[1] for text in texts for match in MADE_AT.finditer(text)]
    seen.made(float(at))
