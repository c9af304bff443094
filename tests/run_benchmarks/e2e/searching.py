"""A search on two real hosts, one worker on each: how its run is configured, and what its controller has told."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from run_benchmarks.plan.secrets import by_name_alone
from run_benchmarks.results.load import load_run
from tests.lab.lab import Lab
from tests.run_benchmarks.e2e.harness import Bench, Ended, containers, ending, run_folder, wait_until
from tests.run_benchmarks.e2e.setup import demo_data, machine_plan, make_image
from utils.events import parse_line
from utils.search.events import CONTROLLER_LOG, SearchEvent

CASE = "search:pytorch:cpu:2:1:1"
RUNS = "/var/lib/flagperf-test/.flagperf/runs"
# How the commands begin: of a worker's rank, as of no other process of the second host; of the controller.
RANK, CONTROLLER = "python3 -u", "python3 -u -m benchmarks.search.controller"
Events = list[tuple[str, dict[str, Any]]]


def make_search_image(folder: Path) -> str:
    """The image of this case, which holds more than the others'."""
    return make_image(
        machine_plan(folder / "config", demo_data("search"), "search:pytorch:cpu:1:2:1"), folder
    )


@dataclass(frozen=True)
class Searching:
    """A search on the hosts `h1` and `h2`, and how its run is configured."""

    lab: Lab
    bench: Bench

    def configure(self, trials: int, lost_after_s: int, **settings: object) -> None:
        """Let it end after so many trials, and not by time."""
        config = self.bench.training / "cpu" / "search-pytorch" / "config" / "config_cpux2x1.py"
        ends = f"search_seconds = 3000\nlost_after_seconds = {lost_after_s}\nmax_trials = {trials}\n"
        config.write_text(f"{config.read_text()}\n{ends}")
        self.bench.test(**{"CASES": {CASE: str(demo_data("search"))}, **settings})

    @contextmanager
    def under_way(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """A run in which the second host's worker has ended a trial; it is ended in order where the test fails."""
        process = self.bench.start(*arguments)
        with ending(self.bench, process):
            self.wait_for(process, SearchEvent.TRIAL_END, worker=1)
            yield process

    def wait_for(self, process: subprocess.Popen[str], name: SearchEvent, **wanted: object) -> None:
        """Wait until the controller has told such an event."""

        def is_told() -> bool:
            return any(wanted.items() <= value.items() for value in values(self.told(), name))

        wait_until(is_told, lambda: process.poll() is None, f"{name.value} with {wanted}")

    def told(self) -> Events:
        """What the search's controller, on the first host, has told so far."""
        find = ("find", RUNS, "-name", CONTROLLER_LOG, "-exec", "cat", "{}", "+")
        return parsed(self.lab.ssh(1, *find, check=False).stdout)

    def signal(self, host: int, name: str, command: str) -> None:
        """Send a signal to the only process of a host whose command begins so."""
        lines = self.lab.ssh(host, "ps", "-eo", "pid,args").stdout.splitlines()
        pids = [pid for pid, args in (line.split(None, 1) for line in lines) if args.startswith(command)]
        assert len(pids) == 1, lines
        self.lab.ssh(host, "kill", f"-{name}", pids[0])

    def logged(self, ended: Ended) -> Events:
        """All that the controller has told in a run that has ended."""
        assert ended.folder is not None
        return parsed((ended.folder / CASE / "round1" / "h1_noderank0" / CONTROLLER_LOG).read_text())

    def measured(self, ended: Ended, *hosts: int) -> Events:
        """The run is in order: measured, each trial at its end, and nothing left on these hosts; what was told."""
        assert ended.code == 0 and ended.folder is not None, ended.output
        assert "Traceback" not in ended.output, ended.output
        (result,) = ended.rounds()
        assert (result["verdict"], result["hosts"], result["failure"]) == ("MEASURED", ["h1", "h2"], None)
        assert result["figures"]["score"]["value"] > 0
        events = self.logged(ended)
        last = max(place for place, (name, _) in enumerate(events) if name == SearchEvent.SEARCH_START.value)
        ends = values(events[last:], SearchEvent.TRIAL_END)
        assert "failed" not in {value["state"] for value in ends}
        started = values(events[last:], SearchEvent.TRIAL_START)
        assert sorted(map(_attempt, started)) == sorted(map(_attempt, ends)), "every trial has its end, once"
        self.assert_nothing_left(ended, *hosts)
        return events[last:]

    def assert_nothing_left(self, ended: Ended, *hosts: int) -> None:
        """No container and no folder of the run is on these hosts, and its results can be read."""
        for host in hosts:
            assert containers(self.lab, host) == run_folder(self.lab, host, ended.uid()) == ""
        assert ended.folder is not None
        load_run(ended.folder, by_name_alone)


def parsed(log: str) -> Events:
    """The events of a log: names and values."""
    events = filter(None, map(parse_line, log.splitlines()))
    return [(event.name, dict(event.value)) for event in events]


def values(events: Events, name: SearchEvent) -> list[dict[str, Any]]:
    """Those of one name."""
    return [value for each, value in events if each == name.value]


def _attempt(value: dict[str, Any]) -> tuple[int, int]:
    return value["trial"], value["attempt"]
