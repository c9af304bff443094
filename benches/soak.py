"""Many rounds of a trivial task on two lab hosts, with a fault in every tenth: nothing leaks, every verdict is right.

    .venv/bin/python benches/soak.py [--rounds 200] [--seed 1] [--faults cut,disk] [--runtime docker]

As root, in the environment that test.sh makes. One run of `run.py` from its first round to its last; a controller that
is killed is followed by `run.py resume`. A seed says at which round, host, stage and moment each fault is made; which
there are, and how their rounds may end: soak_faults.py. Exit code 1 where anything is wrong.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "training")]

from soak_accounts import (  # noqa: E402
    Sample,
    containers_left,
    held_by,
    inventory,
    of_rounds,
    quiet,
    round_folders,
)
from soak_faults import FAULTS, Planned, Site, make, planned, work_of  # noqa: E402
from soak_judging import described, judge, look_back  # noqa: E402
from soak_report import Account, report  # noqa: E402
from soak_setup import ENVIRONMENT, give_small_disk, write_task  # noqa: E402

from tests.lab.lab import Lab  # noqa: E402
from tests.run_benchmarks.e2e.harness import Bench  # noqa: E402
from tests.run_benchmarks.e2e.setup import BASE_IMAGE, machine_plan, make_data, make_image  # noqa: E402

HOSTS = ("h1", "h2")
LOOK_EVERY_S = 0.05
SILENCE_S = 180.0  # of the journal: then the run hangs
END_S = 120.0  # for a run to end that is asked to


@dataclass
class Soak:
    """A run with faults, and what was seen of it.

    plan: round -> its fault. life: how many controllers there were before this one.
    """

    lab: Lab
    bench: Bench
    runtime: str
    plan: dict[int, Planned]
    seed: int
    pool: ThreadPoolExecutor
    process: subprocess.Popen[bytes] | None = None
    life: int = 0
    samples: list[Sample] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)
    made: dict[int, Future[None]] = field(default_factory=dict)
    fewest: tuple[int, int] | None = None
    _read: int = 0

    @property
    def folder(self) -> Path | None:
        """The run's result folder, once it has one."""
        return next((self.bench.folder / "result").glob("run*"), None)

    @property
    def output(self) -> Path:
        return self.bench.folder / "output.txt"

    def run(self) -> int:
        """The run to its end; the exit code of the last controller."""
        code = self._controlled()
        while code == -signal.SIGKILL and self.folder:
            self.life += 1
            code = self._controlled("resume", str(self.folder))
        for number, future in self.made.items():
            if error := future.exception(timeout=END_S):
                self.problems.append(f"round {number}: {self.plan[number].fault.kind} was not made: {error}")
        killed = sum(self.plan[number].fault.kind == "controller" for number in self.made)
        if self.life != killed:
            self.problems.append(f"{self.life} controllers were killed, and {killed} of them by a fault")
        return code

    def _controlled(self, *words: str) -> int:
        """Start a controller, or one that takes the run up; what it exits with."""
        command = [sys.executable, "run_benchmarks/run.py", "--config", str(self.bench.config), *words]
        with self.output.open("ab") as output:
            self.process = subprocess.Popen(
                command, cwd=self.bench.training, env=self.bench.env, stdout=output, stderr=subprocess.STDOUT
            )
        try:
            return self._watched(self.process)
        finally:
            self.process.kill()  # where this program failed

    def _watched(self, process: subprocess.Popen[bytes]) -> int:
        """What a controller exits with; its rounds are looked at meanwhile."""
        heard_at, self.fewest = time.monotonic(), None
        while (code := process.poll()) is None:
            for event in self._events():
                heard_at = time.monotonic()
                self._heed(event)
            self._count()
            if time.monotonic() - heard_at > SILENCE_S:
                self.problems.append(f"the journal is silent for {SILENCE_S:g} s: the run was ended")
                process.terminate()
                return process.wait(END_S)
            time.sleep(LOOK_EVERY_S)
        for event in self._events():
            self._heed(event)
        return code

    def _events(self) -> Iterator[dict[str, Any]]:
        """The journal's new lines; what is being written waits."""
        journal = self.folder / "journal.jsonl" if self.folder else None
        if journal is None or not journal.is_file():
            return
        with journal.open("rb") as file:
            file.seek(self._read)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                self._read += len(line)
                with suppress(ValueError):  # a line that a controller was killed over
                    yield json.loads(line)

    def _heed(self, event: dict[str, Any]) -> None:
        number = event.get("round", 0)
        fault = self.plan.get(number)
        if fault and event.get("stage") == fault.stage and number not in self.made:
            assert self.process
            random = Random(f"{self.seed}:{number}")
            site = Site(self.lab, fault.host, number, self.runtime, self.process.pid, random)
            self.made[number] = self.pool.submit(make, fault, site)
        if event["event"] in ("round_started", "round_resumed"):
            self.fewest = None
        if event["event"] == "round_ended":
            self._end(number)

    def _count(self) -> None:
        """Keep the fewest descriptors and children of this round."""
        assert self.process
        try:
            _, *held = held_by(self.process.pid)
        except (OSError, ValueError):  # it has just ended
            return
        before = self.fewest or held
        self.fewest = min(before[0], held[0]), min(before[1], held[1])

    def _end(self, number: int) -> None:
        """Look at the controller and the hosts at the end of a round."""
        assert self.process
        try:
            rss, *_ = held_by(self.process.pid)
        except (OSError, ValueError):
            rss = 0
        if rss and self.fewest:
            self.samples.append(Sample(number, self.life, rss, *self.fewest))
        self.fewest = None
        looked = quiet(partial(self._left_of, number), 3, partial(time.sleep, 0.3))
        for text in sorted(looked):
            self.left.setdefault(text, f"after round {number}")
        if number % 10 == 0:
            print(f"round {number}: {rss / 1024:.1f} MiB, {len(self.left)} left", file=sys.stderr, flush=True)

    def _left_of(self, number: int) -> set[str]:
        """What rounds have left on the hosts up to now."""
        texts = set()
        for index, host in enumerate(self.lab.hosts, start=1):
            left = of_rounds(work_of(host), host.cgroup.pids(), number)
            if self.runtime != "process":
                listed = self.lab.ssh(index, "docker", "ps", "--all", "--format", "{{.Names}}")
                left |= containers_left(listed.stdout.split(), number)
            texts |= {f"{host.name}: {text}" for text in left}
        return texts

    def account(self, seen: dict[str, Counter[str]]) -> Account:
        """What is reported of it, `seen` being how its rounds ended."""
        left = [f"{where}: {text}" for text, where in self.left.items()]
        sizes = [file.stat().st_size for file in self.results]
        kib = sum(sizes) / 1024 / max(len(sizes), 1)
        return Account(seen, self.samples, self.life + 1, self.problems, left, kib)

    @property
    def results(self) -> list[Path]:
        """The files of the rounds' results."""
        folders = round_folders(self.folder) if self.folder else []
        return [folder / "result.json" for folder in folders if (folder / "result.json").is_file()]


def soaked(options: argparse.Namespace, folder: Path) -> int:
    """Run the soak in `folder`; the exit code."""
    plan = planned(options.seed, options.rounds, options.every, options.faults)
    print(
        "faults: "
        + ("; ".join(f"round {number}: {described(each)}" for number, each in plan.items()) or "none")
    )
    images = []
    if options.runtime != "process":
        images = [make_image(machine_plan(folder / "config", make_data()), folder), BASE_IMAGE]
    data, temporary = folder / "data", folder / "temporary"
    data.mkdir()
    temporary.mkdir()
    with (
        Lab(hosts=len(HOSTS), images=images, share=[ENVIRONMENT, sys.base_prefix]) as lab,
        ThreadPoolExecutor() as pool,
    ):
        for index, _ in enumerate(HOSTS, start=1):
            give_small_disk(lab, index)
        bench = Bench(folder / "bench", HOSTS, {**lab.env, "TMPDIR": str(temporary)})
        write_task(bench, options.rounds, data, options.runtime)
        before = [inventory(host) for host in lab.hosts]
        soak = Soak(lab, bench, options.runtime, plan, options.seed, pool)
        begin = time.monotonic()
        code = soak.run()
        look_back(soak, before, temporary)
        exit_code = report(soak.account(judge(soak, options.rounds, code)), time.monotonic() - begin)
    if exit_code:
        kept = Path(tempfile.mkdtemp(prefix="flagperf-soak-kept-", dir="/var/tmp"))
        shutil.copytree(bench.folder / "result", kept / "result", dirs_exist_ok=True)
        shutil.copy(soak.output, kept)
        print(f"the run's folder and output are kept in {kept}", file=sys.stderr)
    return exit_code


def read_options(words: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    kinds = [fault.kind for fault in FAULTS]
    parser.add_argument("--rounds", type=int, default=200, help="of the task (%(default)s)")
    parser.add_argument("--every", type=int, default=10, help="rounds of which one has a fault (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the faults (%(default)s)")
    parser.add_argument("--runtime", choices=("process", "docker"), default="process", help="(%(default)s)")
    parser.add_argument("--faults", default=",".join(kinds), help="kinds, of %(default)s")
    options = parser.parse_args(words)
    options.faults = options.faults.split(",")
    if unknown := set(options.faults) - set(kinds):
        parser.error(f"no such fault: {', '.join(sorted(unknown))}; there are {', '.join(kinds)}")
    return options


def main() -> int:
    """Soak, print the tables and, last, one JSON object."""
    options = read_options()
    with tempfile.TemporaryDirectory(prefix="flagperf-soak-", dir="/var/tmp") as name:
        return soaked(options, Path(name))


if __name__ == "__main__":
    sys.exit(main())
