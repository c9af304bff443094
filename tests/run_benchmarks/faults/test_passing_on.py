"""A host dies while nine of them pass an image on: it is named, the others have the image, and nothing is left."""

from __future__ import annotations

from pathlib import Path

from tests.lab.fixtures import LabFactory
from tests.run_benchmarks.e2e.crowd import NODES, crowded
from tests.run_benchmarks.e2e.harness import containers, ending, run_folder, wait_until
from tests.run_benchmarks.faults.seen import Seen, fault

COPY = "find /var/lib/flagperf-test/.flagperf -name copy -size +1M"


@fault("dead-in-passing")
def test_a_host_dies_while_it_is_given_the_image(
    lab: LabFactory, tmp_path: Path, data: Path, seen: Seen
) -> None:
    hosts, bench = crowded(lab, tmp_path, data)
    process = bench.start()
    with ending(bench, process):
        bench.wait_for_log(process, "which pass it on")
        hosts.slow(NODES, "20mbit")  # so that its copy takes a minute
        wait_until(
            lambda: hosts.ssh(NODES, "sh", "-c", COPY, check=False).stdout,
            lambda: process.poll() is None,
            "a part of the image on the last host",
        )
        hosts.kill(NODES)
        seen.made()
    ended = bench.ended(process)

    seen.run(ended.folder)
    assert "Traceback" not in ended.output, ended.output
    for number in range(1, NODES):
        assert containers(hosts, number) == ""
        assert run_folder(hosts, number, ended.uid()) == ""
