"""One real host that is listed by its name and by its address: it is refused as two nodes, by a run and by doctor."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.lab.lab import Lab
from tests.run_benchmarks.e2e.harness import Bench, containers
from tests.run_benchmarks.e2e.pair import write_pair


def test_one_machine_by_two_names_is_no_cluster(
    two_hosts: Lab, bench: Callable[..., Bench], data: Path
) -> None:
    address = two_hosts.hosts[0].address
    twice = bench(["h1", address], **two_hosts.env)
    write_pair(twice.training, "cpu", "cpu", 1)
    twice.test(CASES={"pair:pytorch:cpu:2:1:1": str(data)})
    examined = twice.run("doctor")
    ended = twice.run()
    for each in (examined, ended):
        assert each.code == 3, each.output
        assert f"h1 and {address} are one machine" in each.output, each.output
    assert ended.folder and ended.rounds() == []
    assert containers(two_hosts, 1) == ""
    twice.cluster(HOSTS=["h1", "h2"])
    assert "one machine" not in twice.run("doctor").output
