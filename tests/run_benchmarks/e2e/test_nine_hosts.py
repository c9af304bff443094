"""Nine hosts: code and image leave the controller for two of them, which pass them on, and the round is as ever."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.lab.fixtures import LabFactory
from tests.run_benchmarks.e2e.crowd import CASE, HOSTS, NODES, crowded
from tests.run_benchmarks.e2e.harness import containers, run_folder

PASSED_ON = re.compile(r"(\S+): (\d+) of (\d+) hosts got it from each other")


def test_nine_hosts_pass_code_and_image_on(lab: LabFactory, tmp_path: Path, data: Path) -> None:
    hosts, bench = crowded(lab, tmp_path, data)
    ended = bench.run()

    assert ended.code == 0 and ended.folder is not None, ended.output
    (result,) = ended.rounds()
    assert (result["case"], result["verdict"], result["hosts"]) == (CASE, "CONVERGED", HOSTS)
    # the code goes to all nine; the image from the host that built it to the eight others
    ways = sorted((int(count), int(of)) for _, count, of in PASSED_ON.findall(ended.output))
    assert ways == [(NODES - 1 - 2, NODES - 1), (NODES - 2, NODES)], ended.output
    images = json.loads((ended.folder / CASE / "round1" / "result.json").read_text())["images"]
    assert sorted(images) == sorted(HOSTS) and len(set(images.values())) == 1
    for number in range(1, NODES + 1):
        assert (ended.folder / CASE / "round1" / f"h{number}_noderank{number - 1}").is_dir()
        assert containers(hosts, number) == ""
        assert run_folder(hosts, number, ended.uid()) == ""
