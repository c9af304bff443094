"""A search on two real hosts in containers: a worker that is killed is started again, and the search is measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.lab.fixtures import LabFactory
from tests.lab.lab import Lab
from tests.run_benchmarks.e2e.harness import Bench, containers, ending, wait_until
from tests.run_benchmarks.e2e.setup import BASE_IMAGE, machine_plan, make_image
from tests.run_benchmarks.e2e.test_two_hosts_cases import demo_data
from utils.events import parse_line
from utils.search.events import CONTROLLER_LOG, SearchEvent

CASE = "search:pytorch:cpu:2:1:1"
TRIALS = 12  # it ends by these, and not by time; more than one worker does while the other starts anew
RUNS = "/var/lib/flagperf-test/.flagperf/runs"
RANK = "python3 -u"  # how its command begins, and no other of the host's


@pytest.fixture(scope="session")
def search_image(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The image of this case, which holds more than the others'."""
    folder = tmp_path_factory.mktemp("search_image")
    return make_image(
        machine_plan(folder / "config", demo_data("search"), "search:pytorch:cpu:1:2:1"), folder
    )


def test_a_worker_that_is_killed_is_started_again(
    lab: LabFactory, search_image: str, bench: Callable[..., Bench]
) -> None:
    hosts = lab(hosts=2, images=[search_image, BASE_IMAGE])
    run = bench(["h1", "h2"], **hosts.env)
    config = run.training / "cpu" / "search-pytorch" / "config" / "config_cpux2x1.py"
    patient = "search_seconds = 3000\nlost_after_seconds = 600"  # who is killed is missed by its launcher
    config.write_text(f"{config.read_text()}\n{patient}\nmax_trials = {TRIALS}\n")
    run.test(CASES={CASE: str(demo_data("search"))})
    process = run.start()
    with ending(run, process):
        wait_until(
            lambda: _ended(_events(hosts), worker=1), lambda: process.poll() is None, "a trial of h2's"
        )
        _kill_rank(hosts, 2)
        ended = run.ended(process)

    assert ended.code == 0, ended.output
    (result,) = ended.rounds()
    assert (result["verdict"], result["hosts"], result["failure"]) == ("MEASURED", ["h1", "h2"], None)
    assert ended.folder is not None
    log = ended.folder / CASE / "round1" / "h1_noderank0" / CONTROLLER_LOG
    events = _parsed(log.read_text())
    sessions = [value["session"] for value in _values(events, SearchEvent.WORKER) if value["worker"] == 1]
    assert max(sessions) >= 2, "it has joined again"
    ends = _values(events, SearchEvent.TRIAL_END)
    assert {value["worker"] for value in ends if value["state"] == "done"} == {0, 1}
    assert "failed" not in {value["state"] for value in ends}
    started = {(value["trial"], value["attempt"]) for value in _values(events, SearchEvent.TRIAL_START)}
    assert started == {(value["trial"], value["attempt"]) for value in ends}, "every trial has its end"
    assert result["figures"]["score"]["value"] > 0
    assert [containers(hosts, host) for host in (1, 2)] == ["", ""]


def _events(hosts: Lab) -> list[tuple[str, dict[str, Any]]]:
    """What the controller on the first host has told so far."""
    find = ("find", RUNS, "-name", CONTROLLER_LOG, "-exec", "cat", "{}", "+")
    return _parsed(hosts.ssh(1, *find, check=False).stdout)


def _parsed(log: str) -> list[tuple[str, dict[str, Any]]]:
    events = filter(None, map(parse_line, log.splitlines()))
    return [(event.name, dict(event.value)) for event in events]


def _values(events: list[tuple[str, dict[str, Any]]], name: SearchEvent) -> list[dict[str, Any]]:
    return [value for each, value in events if each == name.value]


def _ended(events: list[tuple[str, dict[str, Any]]], worker: int) -> bool:
    return any(value["worker"] == worker for value in _values(events, SearchEvent.TRIAL_END))


def _kill_rank(hosts: Lab, host: int) -> None:
    lines = hosts.ssh(host, "ps", "-eo", "pid,args").stdout.splitlines()
    ranks = [pid for pid, args in (line.split(None, 1) for line in lines) if args.startswith(RANK)]
    assert len(ranks) == 1, lines
    hosts.ssh(host, "kill", "-KILL", ranks[0])
