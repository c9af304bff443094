"""A round that was cut off goes on in another run: the real controller, driver and BERT, as processes here."""

from __future__ import annotations

import json
import shutil
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks import verbs
from run_benchmarks.verbs import options
from tests.benchmarks.bert.shard_files import write_data
from tests.benchmarks.driver.ranks import TINY, TRAINING
from tests.benchmarks.driver.test_driver_restart import TASK, killing_hook
from tests.run_benchmarks.plan.tree import copy_code
from utils.events import read_events

CASE = "bert:pytorch:cpu:1:1:1"
TWICE = "bert:pytorch:cpu:1:1:2"
# The only evaluation is that of the last step, which the round that is killed in its eighth never sees.
SETTINGS = {**TINY, **TASK, "target_mlm_accuracy": 0.0, "eval_iter_start_samples": 180}


class Site:
    """A training folder with the real driver and a vendor of its own, and the two files."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.training, self.config = folder, folder / "training", folder / "config"
        self.vendor = self.training / "cpu" / "bert-pytorch"
        (self.vendor / "config").mkdir(parents=True)
        self.config.mkdir()
        for name in ("utils", "benchmarks"):
            copy_code(TRAINING / name, self.training / name)
        shutil.copy(TRAINING / "cpu" / "vendor.py", self.training / "cpu")
        lines = [f"{name} = {value!r}" for name, value in SETTINGS.items()]
        (self.vendor / "config" / "config_cpux1x1.py").write_text("\n".join(lines) + "\n")
        (self.config / "cluster_conf.py").write_text(f'HOSTS = ["localhost"]\nMASTER_PORT = "{port}"\n')
        conf = {
            "VENDOR": "cpu",
            "CASES": {CASE: str(write_data(folder / "data"))},
            "RUNTIME": "process",
            "PROCESS_PYTHON": sys.executable,
            "MIN_FREE_DISK_GIB": 0,
            "FLAGPERF_PATH": f"{folder}/host",
            "FLAGPERF_LOG_PATH": f"{folder}/result",
            "CHECKPOINT_PATH": f"{folder}/ck",
        }
        text = "\n".join(f"{name} = {value!r}" for name, value in conf.items())
        (self.config / "test_conf.py").write_text(text + "\n")

    def twice(self) -> None:
        """Let the case have two rounds."""
        conf = self.config / "test_conf.py"
        conf.write_text(conf.read_text().replace(CASE, TWICE))

    def main(self, *arguments: str) -> int:
        return verbs.main(["--config", str(self.config), *arguments])

    def newest(self) -> Path:
        """The result folder of the last run; the next run has a name of its own."""
        return max((self.folder / "result").iterdir())


def result_of(run: Path, case: str = CASE, number: int = 1) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((run / case / f"round{number}" / "result.json").read_text())
    return loaded


def uid_of(run: Path) -> str:
    """The run's folder below CHECKPOINT_PATH."""
    return str(json.loads((run / "summary.json").read_text())["uid"])


def curve_of(run: Path) -> dict[int, float]:
    (log,) = (run / CASE / "round1").glob("*/rank0.out.log")
    steps = [event.value for event in read_events(log) if event.name == "STEP_END"]
    return {value["global_steps"]: value["loss"] for value in steps}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    with socket.socket() as bound:
        bound.bind(("", 0))
        site = Site(tmp_path, bound.getsockname()[1])
        monkeypatch.setattr(options, "TRAINING_DIR", site.training)
        yield site


def test_a_round_that_was_killed_goes_on_in_another_run(site: Site, capsys: Any) -> None:
    killing_hook(site.vendor / "extern", 8)
    assert site.main() == 1
    cut = site.newest()
    failed = result_of(cut)
    assert (failed["verdict"], failed["failure"]["class"]) == ("FAILED", "rank_killed")
    assert failed["continued"] is None
    saved = site.folder / "ck" / uid_of(cut) / CASE / "round1"
    assert [path.name for path in sorted(saved.glob("*.ckpt"))] == ["step00000003.ckpt", "step00000006.ckpt"]
    assert not list(cut.rglob("*.ckpt"))  # they are no logs

    shutil.rmtree(site.vendor / "extern")
    assert site.main("--continue-from", cut.name) == 0, capsys.readouterr().err
    rest = site.newest()
    assert rest != cut
    found = result_of(rest)
    assert found["verdict"] == "CONVERGED"
    continued = found["continued"]
    assert (continued["run"], continued["step"], continued["samples"]) == (uid_of(cut), 6, 96)
    assert continued["file"] == str(saved / "step00000006.ckpt")
    figures = found["figures"]
    assert figures["samples"]["value"] == 96
    assert figures["p_whole"]["window"].endswith("this part only, continued from step 6")
    assert figures["time_to_target"]["value"] > continued["train_time"]
    assert curve_of(rest)[7] == curve_of(cut)[7]
    assert sorted(curve_of(rest)) == [7, 8, 9, 10, 11, 12]

    assert json.loads((rest / "plan.json").read_text())["continue_from"] == uid_of(cut)
    first = json.loads((rest / "journal.jsonl").read_text().splitlines()[0])
    assert (first["event"], first["continue_from"]) == ("run_started", uid_of(cut))
    assert f"checkpoints of {uid_of(cut)}" in (rest / "flagperf_run.log").read_text()
    assert "1 (from step 6)" in (rest / "summary.md").read_text()
    assert [path.name for path in (site.folder / "ck" / uid_of(rest)).rglob("*.ckpt")] == [
        "step00000009.ckpt"
    ]
    assert len(list(saved.glob("*.ckpt"))) == 2  # those of the earlier run stay


def test_a_round_that_had_converged_is_not_run_again(site: Site, capsys: Any) -> None:
    """Cut off in the second round."""
    site.twice()
    hook = killing_hook(site.vendor / "extern", 8) / "killed.py"
    only = 'os.environ["FLAGPERF_CHECKPOINT_DIR"].endswith("round2")'
    hook.write_text(hook.read_text().replace("if calls == 16:", f"if calls == 16 and {only}:"))
    assert site.main() == 1
    cut = site.newest()
    verdicts = [result_of(cut, TWICE, number)["verdict"] for number in (1, 2)]
    assert verdicts == ["CONVERGED", "FAILED"]

    shutil.rmtree(site.vendor / "extern")
    assert site.main("--continue-from", str(cut)) == 0, capsys.readouterr().err
    rest = site.newest()
    assert [path.name for path in (rest / TWICE).glob("round*")] == ["round2"]
    assert result_of(rest, TWICE, 2)["continued"]["step"] == 6
    assert "round 1: had succeeded; not run again" in (rest / "flagperf_run.log").read_text()

    for earlier in (rest.name, uid_of(rest)):  # it knows also what the first of the three had done
        assert site.main("--continue-from", earlier) == 2
        assert "every round of these cases had succeeded" in " ".join(capsys.readouterr().err.split())


def test_a_round_that_had_not_begun_begins_anew(site: Site, capsys: Any) -> None:
    """Cut off in the first round, and its controller with it."""
    site.twice()
    killing_hook(site.vendor / "extern", 8)
    assert site.main() == 1
    cut = site.newest()
    shutil.rmtree(site.folder / "ck" / uid_of(cut) / TWICE / "round2")

    shutil.rmtree(site.vendor / "extern")
    assert site.main("--continue-from", cut.name) == 0, capsys.readouterr().err
    rest = site.newest()
    first, second = (result_of(rest, TWICE, number) for number in (1, 2))
    assert first["continued"]["step"] == 6
    assert second["continued"] is None
    assert second["figures"]["samples"]["value"] == 192
    (note,) = (note for note in second["notes"] if note.startswith("begun"))
    assert note == f"begun anew: {site.folder}/ck/{uid_of(cut)}/{TWICE}/round2 has no checkpoint"
    assert f"no checkpoint of {TWICE} round2: begun anew" in (rest / "flagperf_run.log").read_text()


def test_without_a_checkpoint_nothing_is_launched(site: Site, capsys: Any) -> None:
    assert site.main("--continue-from", "run20260102030405") == 3
    error = " ".join(capsys.readouterr().err.split())
    assert f"run20260102030405 has no checkpoint of {CASE}; the runs with checkpoints are none" in error
    assert not list(site.newest().glob("*/round1"))
