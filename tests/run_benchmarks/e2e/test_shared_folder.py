"""Three hosts, two of which share their work folder with each other and with the controller, as by NFS."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.lab.fixtures import LabFactory
from tests.lab.lab import Common
from tests.run_benchmarks.e2e.crowd import write_crowd
from tests.run_benchmarks.e2e.harness import Bench, containers
from tests.run_benchmarks.e2e.setup import BASE_IMAGE

CASE = "crowd:pytorch:T1:3:1:2"
HOSTS = ["h1", "h2", "h3"]


@pytest.fixture
def common(tmp_path: Path) -> Path:
    (tmp_path / "common").mkdir()
    return tmp_path / "common"


def test_what_hosts_share_is_copied_once_and_their_logs_are_read_here(
    lab: LabFactory, tmp_path: Path, data: Path, common: Path
) -> None:
    hosts = lab(hosts=3, images=[BASE_IMAGE], fresh=True, common=[Common(common, str(common), (2, 3))])
    bench = Bench(tmp_path, HOSTS, hosts.env)
    write_crowd(bench, 3)
    settings = {"VENDOR": "twin", "CASES": {CASE: str(data)}, "FLAGPERF_LOG_LEVEL": "debug"}
    bench.test(**settings, FLAGPERF_PATH_HOST=str(common))

    ended = bench.run()

    assert ended.code == 0 and ended.folder is not None, ended.output
    assert [result["verdict"] for result in ended.rounds()] == ["CONVERGED"] * 2
    work = common / ".flagperf"
    assert f"h2, h3 and this machine share {work}: what is copied there is copied once" in ended.output
    commands = (ended.folder / "flagperf_run.log").read_text().splitlines()
    unpacking = [line for line in commands if "tar -xf - -C" in line and f"{work} tree-" in line]
    assert len(unpacking) == 2, "by h1 for itself, by h2 for both"
    assert "1 of 2 hosts got it from each other, the others from this machine" in ended.output
    written = json.loads((ended.folder / CASE / "round1" / "result.json").read_text())
    assert sorted(written["images"]) == HOSTS and len(set(written["images"].values())) == 1
    for number in (1, 2):
        folders = ended.folder.glob(f"{CASE}/round{number}/h*_noderank*")
        assert sorted(folder.name for folder in folders) == [
            f"h{rank + 1}_noderank{rank}" for rank in range(3)
        ]
    sending = [line for line in commands if "| sha256sum | " in line and "--format=ustar" in line]
    from_here = [line for line in sending if "localhost: " in line]
    assert len(from_here) == 4 and len(sending) == 6, "of h2 and h3 in each round; h1 sends its own"
    kept = sorted(path.name[:5] for path in work.iterdir() if path.name not in ("units", "runs", "pip"))
    assert kept == ["data-", "data-", "tree-"], "of each host what it has read of the data, and the code"
    for folder in ("units", "runs", "pip"):
        assert not list((work / folder).glob("*"))
    for number in range(1, 4):
        assert containers(hosts, number) == ""
