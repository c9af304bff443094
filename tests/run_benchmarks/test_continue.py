"""A round that was cut off goes on in another run: the real controller, driver and BERT, as processes here."""

from __future__ import annotations

import json
import shutil
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks import verbs
from run_benchmarks.plan.as_dict import plan_as_dict
from run_benchmarks.plan.unchanged import plan_digest
from run_benchmarks.resumable import plan_again
from run_benchmarks.verbs import options
from tests.benchmarks.bert.shard_files import write_data
from tests.benchmarks.driver.ranks import TINY, TRAINING
from tests.benchmarks.driver.test_driver_restart import TASK, killing_hook
from tests.run_benchmarks.plan.tree import copy_code
from utils.events import read_events

CASE = "bert:pytorch:cpu:1:1:1"
THRICE = "bert:pytorch:cpu:1:1:3"
# The only evaluation is that of the last step, which a round that is killed in its eighth never sees.
SETTINGS = {**TINY, **TASK, "target_mlm_accuracy": 0.0, "eval_iter_start_samples": 180}


class Site:
    """A training folder with the real driver and a vendor of its own, and the two files."""

    def __init__(self, folder: Path, port: int, python: str) -> None:
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
            "PROCESS_PYTHON": python,
            "MIN_FREE_DISK_GIB": 0,
            "FLAGPERF_PATH": f"{folder}/host",
            "FLAGPERF_LOG_PATH": f"{folder}/result",
            "CHECKPOINT_PATH": f"{folder}/ck",
        }
        text = "\n".join(f"{name} = {value!r}" for name, value in conf.items())
        (self.config / "test_conf.py").write_text(text + "\n")

    def thrice(self) -> None:
        """Let the case have three rounds."""
        conf = self.config / "test_conf.py"
        conf.write_text(conf.read_text().replace(CASE, THRICE))

    def main(self, *arguments: str) -> int:
        return verbs.main(["--config", str(self.config), *arguments])

    def newest(self) -> Path:
        """The result folder of the last run; the next run has a name of its own."""
        return max((self.folder / "result").iterdir())


@contextmanager
def made_site(folder: Path, python: str) -> Iterator[Site]:
    with socket.socket() as bound, pytest.MonkeyPatch.context() as patch:
        bound.bind(("", 0))
        site = Site(folder, bound.getsockname()[1], python)
        patch.setattr(options, "TRAINING_DIR", site.training)
        yield site


@dataclass(frozen=True)
class Story:
    """A run whose first round converged, while the two others were killed in their eighth step, and the one after it.

    Of the third round's checkpoints there are none any more: as if its controller had ended before it.
    """

    site: Site
    cut: Path
    rest: Path

    @property
    def saved(self) -> Path:
        """The checkpoints of the second round of the first run."""
        return self.checkpoints(self.cut, 2)

    def checkpoints(self, run: Path, number: int) -> Path:
        return self.site.folder / "ck" / uid_of(run) / THRICE / f"round{number}"


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory, warm_python: str) -> Iterator[Story]:
    with made_site(tmp_path_factory.mktemp("site"), warm_python) as site:
        site.thrice()
        hook = killing_hook(site.vendor / "extern", 8) / "killed.py"
        spared = 'os.environ["FLAGPERF_CHECKPOINT_DIR"].endswith("round1")'
        hook.write_text(hook.read_text().replace("if calls == 16:", f"if calls == 16 and not {spared}:"))
        assert site.main() == 1
        story = Story(site, site.newest(), Path())
        shutil.rmtree(story.checkpoints(story.cut, 3))
        shutil.rmtree(site.vendor / "extern")
        assert site.main("--continue-from", story.cut.name) == 0
        assert site.newest() != story.cut
        yield replace(story, rest=site.newest())


def result_of(run: Path, number: int) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((run / THRICE / f"round{number}" / "result.json").read_text())
    return loaded


def uid_of(run: Path) -> str:
    """The run's folder below CHECKPOINT_PATH."""
    return str(json.loads((run / "summary.json").read_text())["uid"])


def curve_of(run: Path, number: int) -> dict[int, float]:
    (log,) = (run / THRICE / f"round{number}").glob("*/rank0.out.log")
    steps = [event.value for event in read_events(log) if event.name == "STEP_END"]
    return {value["global_steps"]: value["loss"] for value in steps}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.ckpt"))


def test_a_round_that_was_killed_goes_on_in_another_run(story: Story) -> None:
    cut, rest, saved = story.cut, story.rest, story.saved
    failed = result_of(cut, 2)
    assert (failed["verdict"], failed["failure"]["class"]) == ("FAILED", "rank_killed")
    assert failed["continued"] is None
    assert names(saved) == ["step00000003.ckpt", "step00000006.ckpt"]  # those of the earlier run stay
    assert not list(cut.rglob("*.ckpt"))  # they are no logs

    result = result_of(rest, 2)
    assert result["verdict"] == "CONVERGED"
    continued = result["continued"]
    assert (continued["run"], continued["step"], continued["samples"]) == (uid_of(cut), 6, 96)
    assert continued["file"] == str(saved / "step00000006.ckpt")
    figures = result["figures"]
    assert figures["samples"]["value"] == 96
    assert figures["p_whole"]["window"].endswith("this part only, continued from step 6")
    assert figures["time_to_target"]["value"] > continued["train_time"]
    assert curve_of(rest, 2)[7] == curve_of(cut, 2)[7]
    assert sorted(curve_of(rest, 2)) == [7, 8, 9, 10, 11, 12]

    assert json.loads((rest / "plan.json").read_text())["continue_from"] == uid_of(cut)
    first = json.loads((rest / "journal.jsonl").read_text().splitlines()[0])
    assert (first["event"], first["continue_from"]) == ("run_started", uid_of(cut))
    assert f"checkpoints of {uid_of(cut)}" in (rest / "flagperf_run.log").read_text()
    assert "2 (from step 6)" in (rest / "summary.md").read_text()
    assert names(story.checkpoints(rest, 2)) == ["step00000009.ckpt"]


def test_a_round_that_had_converged_is_not_run_again(story: Story, capsys: Any) -> None:
    verdicts = [result_of(story.cut, number)["verdict"] for number in (1, 2, 3)]
    assert verdicts == ["CONVERGED", "FAILED", "FAILED"]
    rest = story.rest
    assert sorted(path.name for path in (rest / THRICE).glob("round*")) == ["round2", "round3"]
    assert "round 1: had succeeded; not run again" in (rest / "flagperf_run.log").read_text()

    for earlier in (rest.name, uid_of(rest)):  # it knows also what the first of the three had done
        assert story.site.main("--continue-from", earlier) == 2
        assert "every round of these cases had succeeded" in " ".join(capsys.readouterr().err.split())


def test_a_run_that_goes_on_with_one_that_lay_elsewhere_has_the_same_plan_again(story: Story) -> None:
    """Which rounds are done was seen when it began; what has its place by now may be anybody's, and is not asked."""
    elsewhere = story.cut.rename(story.site.folder / "elsewhere")
    planted = Path(shutil.copytree(elsewhere, story.cut))
    planted.chmod(0o777)
    try:
        plan = plan_again(story.rest, story.site.config, story.site.training, None)
    finally:
        shutil.rmtree(planted)
        elsewhere.rename(story.cut)
    assert plan.done == {THRICE: (1,)}
    first = json.loads((story.rest / "journal.jsonl").read_text().splitlines()[0])
    assert plan_digest(plan_as_dict(plan)) == first["plan"]


def test_a_round_that_had_not_begun_begins_anew(story: Story) -> None:
    begun = result_of(story.rest, 3)
    assert begun["continued"] is None
    assert begun["figures"]["samples"]["value"] == 192
    (note,) = (note for note in begun["notes"] if note.startswith("begun"))
    assert note == f"begun anew: {story.checkpoints(story.cut, 3)} has no checkpoint"
    log = (story.rest / "flagperf_run.log").read_text()
    assert f"no checkpoint of {THRICE} round3: begun anew" in log


def test_without_a_checkpoint_nothing_is_launched(tmp_path: Path, capsys: Any) -> None:
    with made_site(tmp_path, sys.executable) as site:
        assert site.main("--continue-from", "run20260102030405") == 3
        error = " ".join(capsys.readouterr().err.split())
        assert f"run20260102030405 has no checkpoint of {CASE}; the runs with checkpoints are none" in error
        assert not list(site.newest().glob("*/round1"))
