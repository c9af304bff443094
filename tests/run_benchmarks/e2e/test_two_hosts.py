"""The main job on two real hosts: DDP over gloo between them, and the result back on this machine."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from run_benchmarks.exports.mlperf import export_mlperf
from run_benchmarks.plan.secrets import by_name_alone
from run_benchmarks.results.telemetry_file import read_telemetry
from tests.lab.lab import Lab
from tests.run_benchmarks.e2e.harness import QUICK, Bench, containers, run_folder

CASE = "bert:pytorch:cpu:2:1:1"
LOG_LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\t\[[A-Z]+\]\t\[\w+\.py,\d+\].*")


def test_two_hosts_train_to_the_target(
    two_hosts: Lab, bench: Callable[..., Bench], data: Path, tmp_path: Path
) -> None:
    run = bench(["h1", "h2"], **two_hosts.env)
    run.vendor_config("cpux2x1", QUICK)
    run.test(CASES={CASE: str(data)}, CLEAR_CACHES=True)

    ended = run.run()

    assert ended.code == 0, ended.output
    (result,) = ended.rounds()
    assert result["verdict"] == "CONVERGED"
    assert result["hosts"] == ["h1", "h2"]
    assert result["failure"] is None
    # so low a target is met by always guessing the commonest token
    doubt, note = result["notes"]
    assert "was met before training: a trivial answer's mlm_accuracy is" in doubt
    assert note.startswith('precision = "auto" is ')
    # The same image on both hosts.
    assert len(set(result["images"].values())) == 1
    assert set(result["images"]) == {"h1", "h2"}
    _assert_figures(result["figures"], result["facts"])
    assert ended.folder is not None
    (written,) = ended.folder.glob("*/round1/result.json")  # the summary leaves out what is of single nodes
    whole = json.loads(written.read_text())
    _assert_provenance(whole["provenance"])
    for clock in whole["clocks"]:
        assert all(abs(end["offset_s"]) <= end["uncertainty_s"] + 0.01 for end in clock.values()), (
            "one kernel"
        )
    _assert_tree(ended.folder)
    official = [
        note
        for note in export_mlperf(ended.folder, tmp_path / "mlperf", {}, by_name_alone)
        if "checker" in note
    ]
    assert len(official) == 2 and all(" passes the " in note for note in official), official
    for host in (1, 2):
        assert containers(two_hosts, host) == ""
        assert run_folder(two_hosts, host, ended.uid()) == ""


def _assert_figures(figures: dict[str, dict[str, object]], facts: dict[str, object]) -> None:
    value = {name: figure["value"] for name, figure in figures.items()}
    assert all(figure["unit"] and figure["window"] and figure["source"] for figure in figures.values())
    assert value["p_whole"] <= value["p_train"] <= value["p_core"]  # type: ignore[operator]
    assert value["e2e_time"] <= value["round_time"]  # type: ignore[operator]
    assert value["acc"] >= QUICK["target"]  # type: ignore[operator]
    assert value["time_to_target"] is not None
    assert facts["world_size"] == 2
    assert facts["num_trained_samples"] == facts["global_steps"] * 64  # type: ignore[operator]
    # There is no device memory and no peak on a CPU: null, never 0.
    assert value["mem"] is None
    assert value["MFU"] is None


def _assert_provenance(provenance: dict[str, Any]) -> None:
    """Each host was described from within its container, and both ran the same software, that of the image."""
    assert provenance["missing"] == {}
    assert len(provenance["hosts"]) == 2
    for host, monitor in zip(provenance["hosts"], provenance["monitors"], strict=True):
        assert host["cpu"]["CPU(s)"] and host["memory_bytes"] > 2**28 and host["limits"]["RLIMIT_NOFILE"]
        assert 0 < monitor["of_a_core"] < 1 and monitor["sources"]["cpu"]["sampled"] > 0
    (software,) = provenance["software"]
    assert software["nodes"] == [0, 1] and software["packages"]["torch"] and software["system_packages"]
    assert provenance["versions"]["torch"] == software["packages"]["torch"]
    assert provenance["clock_offsets"].keys() == provenance["data"].keys() == {"h1", "h2"}
    assert provenance["configuration"]["seed"] == provenance["seeds"]["seed"]


def _assert_tree(folder: Path) -> None:
    assert re.fullmatch(r"run\d{14}", folder.name)
    names = {
        "flagperf_run.log",
        "plan.json",
        "journal.jsonl",
        "summary.json",
        "summary.md",
        "report.html",
        CASE,
    }
    assert {path.name for path in folder.iterdir()} == names
    log = (folder / "flagperf_run.log").read_text()
    assert all(LOG_LINE.fullmatch(line) for line in log.splitlines()), log
    assert json.loads((folder / "plan.json").read_text())["cases"]
    for rank, host in enumerate(("h1", "h2")):
        node = folder / CASE / "round1" / f"{host}_noderank{rank}"
        found = {path.name for path in node.iterdir()}
        monitors = {"cpu_monitor.log", "mem_monitor.log", "pwr_monitor.log"}
        assert {f"rank{rank}.out.log", "start_pytorch_task.log", *monitors} <= found
        sampled = (node / "cpu_monitor.log").read_text()
        assert sampled.strip() and "not measured" not in sampled  # psutil is in every image
        used = [sample.cpu_s or 0 for sample in read_telemetry(node / "telemetry.jsonl").devices("task")[""]]
        assert used == sorted(used) and used[-1] > used[0], "the accounts of the task's own control group"
    ranks = [log.read_text().count('"event": "FINISHED"') for log in sorted(folder.rglob("rank*.out.log"))]
    assert ranks == [1, 0]
