"""A run that does not begin where it should: its first evaluation against what is published for its checkpoint."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.bert.prepare.originals import read_original
from benchmarks.common.conversion import convert
from benchmarks.driver.arguments import LaunchArguments
from tests.benchmarks.bert.shard_files import write_data
from tests.benchmarks.bert.their_bert import their_model
from tests.benchmarks.driver.ranks import TRAINING, arguments, run_here, values_of
from utils.errors import FlagPerfError

CHECKPOINT = "model.ckpt-28252.safetensors"  # the name by which the case knows MLPerf's


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Weights of another model under the name of MLPerf's checkpoint."""
    folder = write_data(tmp_path_factory.mktemp("data"))
    torch.save(their_model().state_dict(), folder / "model.ckpt-28252.pt")
    convert(folder / "model.ckpt-28252.pt", None, read_original)
    return folder


@pytest.fixture(params=["pytorch", "paddle"])
def framework(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def launch(framework: str, folder: Path, data_dir: Path, **settings: Any) -> LaunchArguments:
    task = {"init_checkpoint": CHECKPOINT, "max_steps": 1, "optimizer": "adamw", **settings}
    return replace(arguments(folder, data_dir, **task), case_dir=TRAINING / "benchmarks" / "bert" / framework)


def test_another_model_under_the_checkpoints_name_is_refused(
    framework: str, tmp_path: Path, data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(
        FlagPerfError, match=r"mlm_accuracy is 0\.\d{5}, and 0\.34085 within 0\.01 is published"
    ):
        run_here(capsys, launch(framework, tmp_path, data_dir))


def test_what_is_published_is_compared_and_written_down(
    framework: str, tmp_path: Path, data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unchecked = launch(framework, tmp_path / "a", data_dir, checkpoint_mlm_accuracy={})
    [start] = values_of(run_here(capsys, unchecked), "INIT_EVALUATION")
    assert "expected" not in start
    published = {CHECKPOINT: start["mlm_accuracy"] + 0.009}
    checked = launch(framework, tmp_path / "b", data_dir, checkpoint_mlm_accuracy=published)
    events = run_here(capsys, checked)
    [start] = values_of(events, "INIT_EVALUATION")
    assert (start["expected"], start["tolerance"]) == (published[CHECKPOINT], 0.01)
    assert values_of(events, "FINISHED")


def test_random_weights_and_other_checkpoints_are_compared_with_nothing(
    framework: str, tmp_path: Path, data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (data_dir / "own.safetensors").write_bytes((data_dir / CHECKPOINT).read_bytes())
    for number, name in enumerate(("", "own.safetensors")):
        run = launch(framework, tmp_path / str(number), data_dir, init_checkpoint=name)
        assert values_of(run_here(capsys, run), "FINISHED")
