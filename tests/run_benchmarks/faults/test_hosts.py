"""Engine killed and restarted · host dead during training, and a spare that takes over: three real hosts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab.fixtures import LabFactory
from tests.lab.lab import Lab
from tests.run_benchmarks.e2e.harness import Bench, Ended, containers, ending, wait_until
from tests.run_benchmarks.e2e.pair import write_pair
from tests.run_benchmarks.e2e.setup import BASE_IMAGE
from tests.run_benchmarks.faults.seen import Seen, fault

CASE = "pair:pytorch:cpu:2:1:1"
TRAINING_GOES_ON = "samples/s"
STEPS = 120  # of a tenth of a second
MakeBench = Callable[..., Bench]
# What an engine is, to the processes of a host: its containers' own are not ended with it.
END_ENGINE = "kill -9 $(pidof dockerd) $(pidof containerd) && rm -f /run/docker.pid /run/docker.sock"
START_ENGINE = (
    "tr '\\0' '\\n' </tmp/dockerd >/tmp/words; "
    'set --; while read -r word; do set -- "$@" "$word"; done </tmp/words; '
    '"$@" >/var/log/dockerd2.log 2>&1 & until docker version >/dev/null 2>&1; do sleep 0.2; done'
)


@pytest.fixture
def hosts(lab: LabFactory, image: str) -> Iterator[Lab]:
    yield lab(hosts=3, images=[image, BASE_IMAGE])


@pytest.fixture
def pair(hosts: Lab, bench: MakeBench, data: Path) -> Bench:
    run = bench(["h1", "h2"], **hosts.env)
    run.cluster(HOSTS=["h1", "h2"], SPARE_HOSTS=["h3"], HOST_LOST_AFTER=5, SSH_CONNECT_TIMEOUT=3)
    write_pair(run.training, "cpu", "cpu", STEPS)
    run.test(CASES={CASE: str(data)}, RETRIES=1)
    return run


def broken_in_training(run: Bench, break_it: Callable[[], object]) -> Ended:
    process = run.start()
    with ending(run, process):
        run.wait_for_log(process, TRAINING_GOES_ON)
        break_it()
    return run.ended(process)


@fault("spare")
def test_a_spare_takes_the_place_of_a_host_that_dies_in_training(hosts: Lab, pair: Bench, seen: Seen) -> None:
    def kill() -> None:
        hosts.kill(2)
        seen.made()

    ended = broken_in_training(pair, kill)
    seen.run(ended.folder)
    (result,) = ended.rounds()
    assert result["verdict"] == "CONVERGED", (result["failure"], ended.output)
    assert result["hosts"] == ["h1", "h3"]
    (attempt,) = result["attempts"]
    assert (attempt["verdict"], attempt["class"], attempt["host"]) == (
        "UNREACHABLE",
        "host_unreachable",
        "h2",
    )
    assert ended.folder is not None
    first: dict[str, Any] = json.loads((ended.folder / CASE / attempt["folder"] / "result.json").read_text())
    assert first["hosts"] == ["h1", "h2"] and first["failure"]["class"] == "host_unreachable"
    assert (ended.folder / CASE / attempt["folder"] / "h1_noderank0" / "rank0.out.log").is_file()
    assert "round1.attempt1 does not count: UNREACHABLE (host_unreachable on h2)" in result["notes"]
    assert (containers(hosts, 1), containers(hosts, 3)) == ("", "")
    hosts.start(2)


@fault("engine-retried")
def test_an_engine_that_is_killed_and_started_anew_fails_the_attempt_alone(
    hosts: Lab, pair: Bench, seen: Seen
) -> None:
    def restart() -> None:
        seen.made()
        hosts.ssh(2, "sh", "-c", "cat /proc/$(pidof dockerd)/cmdline >/tmp/dockerd")
        hosts.ssh(2, "sh", "-c", END_ENGINE)
        hosts.ssh(2, "sh", "-c", START_ENGINE)

    ended = broken_in_training(pair, restart)
    seen.run(ended.folder)
    (result,) = ended.rounds()
    assert result["verdict"] == "CONVERGED", (result["failure"], ended.output)
    assert result["hosts"] == ["h1", "h2"]
    assert [attempt["class"] for attempt in result["attempts"]] in (["engine_failed"], [])
    wait_until(lambda: containers(hosts, 2) == "", lambda: True, "host without containers")
