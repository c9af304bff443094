"""Whole runs in a pod, whose logs have no room on the controller's disk, or seem to have none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from run_benchmarks.full_disk import FULL
from tests.fakes.kubernetes_api import KubernetesApi
from tests.run_benchmarks.hosts.test_kubernetes_runs import api as api
from tests.run_benchmarks.hosts.test_kubernetes_runs import run as run
from tests.run_benchmarks.hosts.test_kubernetes_runs import taken_up
from tests.run_benchmarks.small_disk import small_disk
from tests.run_benchmarks.test_full_disk import FILLS
from tests.run_benchmarks.whole_run import SCRIPT, WholeRun

ROUND = "toy:pytorch:X1:1:1:2/round1"
SPARSE = """
with (Path(__import__("os").readlink("/proc/self/fd/1")).parent / {name!r}).open("ab") as sparse:
    sparse.truncate(190 * 2**20)
time.sleep(0.05)
"""


@pytest.fixture
def roomy(tmp_path: Path) -> Iterator[Path]:
    """The folder of results, which has 200 MB."""
    with small_disk(tmp_path / "result", "200m") as result:
        yield result


def write_script(run: WholeRun, before_its_end: str) -> None:
    assert "\ntime.sleep(0.05)\n" in SCRIPT
    script = SCRIPT.replace("time.sleep(0.05)\n", before_its_end, 1)
    run.tree.write("benchmarks/toy/pytorch/run_pretraining.py", script)
    run.configure(f'CASES = {{"toy:pytorch:X1:1:1:2": "{run.folder}/data"}}\nRETRIES = 0\n')
    run.behave("converge")


def test_a_file_of_a_task_that_is_larger_than_the_disk_makes_it_not_full(
    api: KubernetesApi, roomy: Path, run: WholeRun
) -> None:
    """It is sparse, and named like a monitor's log: no later round was begun, and the run could not be taken up."""
    write_script(run, SPARSE.format(name="x_monitor.log"))
    code, output = taken_up(run)
    assert code == 0 and "not collected: x_monitor.log" in output and FULL not in output, output
    assert [each["verdict"] for each in run.summary["rounds"]] == ["CONVERGED", "CONVERGED"]
    assert not api.objects


def test_without_room_for_the_log_that_its_round_is_judged_by_a_pod_stays(
    api: KubernetesApi, roomy: Path, run: WholeRun
) -> None:
    write_script(run, SPARSE.format(name="rank0.out.log"))
    code, output = taken_up(run)
    assert code == 1 and "not collected: rank0.out.log" in output and "round 2 of 2" not in output, output
    assert len(api.of_kind("pods")) == 1 and not list(roomy.rglob("result.json"))


def stranded(run: WholeRun, disk: Path) -> Path:
    """The folder of a run that has ended for want of room; then there is some for words, and none for logs."""
    write_script(run, FILLS.format(filler=f"{disk}/filler"))
    code, output = taken_up(run)
    assert code == 1 and FULL in output, output
    (folder,) = disk.glob("run*")
    exec(FILLS.format(filler=f"{disk}/filler"))  # noqa: S102 - what was kept for the run's own words, too
    with (disk / "filler").open("r+b") as filler:
        filler.truncate(filler.seek(0, 2) - 15 * 2**12)
    return folder


def test_stop_of_a_run_whose_pods_stay_says_so_and_is_no_success(
    api: KubernetesApi, disk: Path, run: WholeRun
) -> None:
    folder = stranded(run, disk)
    code, output = taken_up(run, "stop")
    why = (
        f"the run has not ended: its controller ended and could not write all results ({FULL}); its pods stay"
    )
    assert code == 3 and why in output and "take the run up within 1800 s" in output.partition(why)[2], output
    assert len(api.of_kind("pods")) == 1
    uid = json.loads((folder / "journal.jsonl").read_text().splitlines()[0])["uid"]
    assert f" cleanup {uid} " in output
    code, output = taken_up(run, "cleanup", uid, "--yes")
    assert code == 0 and not api.objects, output


def test_a_stranded_round_that_has_a_record_from_before_ends_no_run(
    api: KubernetesApi, disk: Path, run: WholeRun
) -> None:
    """Its controller was killed when round.json was written; then the disk filled up."""
    folder = stranded(run, disk)
    (folder / ROUND / "round.json").write_text("{}")
    code, output = taken_up(run, "resume")
    assert code == 1 and "take the run up within" in output, output
    assert "run_ended" not in (folder / "journal.jsonl").read_text()
    assert len(api.of_kind("pods")) == 1 and not (folder / "summary.json").exists()
