"""What is wrong with a worker is told before it asks for a trial: device, precision, settings, data, who started it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.driver.arguments import LaunchArguments
from benchmarks.driver.case import CaseValues
from benchmarks.driver.configuration import digest_of, read_configuration
from benchmarks.driver.extern import case_class
from benchmarks.driver.pytorch.case import MeasurementContext
from tests.benchmarks.driver.ranks import TRAINING, launch_ranks, run_here
from tests.benchmarks.search.trials import CASE, digits
from utils.config_files import load_constants, parts_of_config
from utils.errors import FlagPerfError

CONFIG = TRAINING / "cpu/search-pytorch/config"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return digits(tmp_path_factory.mktemp("search"))


def launch(data: Path, **overrides: Any) -> LaunchArguments:
    return LaunchArguments(CASE, data, "cpu", CONFIG, "config_cpux1x2.py", True, overrides=overrides)


@pytest.mark.parametrize(
    ("overrides", "why"),
    [
        ({"precision": "fp8"}, "precision = 'fp8': is nothing that pytorch on cpu computes in"),
        ({"image_size": 9}, "image_size is 9(.|\n)*of 8 x 8"),
        ({"start": "resnet18"}, "start is 'resnet18'(.|\n)*resnet50, small_resnet"),
        ({"batch_sizes": ()}, "batch_sizes = "),
        ({"batch_sizes": (64, 0)}, "batch_sizes = "),
        ({"most_parameters": 100}, "most_parameters is 100(.|\n)*the start has 8258"),
    ],
)
def test_a_setting_that_cannot_be_had_is_told(data: Path, capsys: Any, overrides: Any, why: str) -> None:
    with pytest.raises(FlagPerfError, match=why):
        run_here(capsys, launch(data, **overrides))


def test_a_worker_names_the_parameters_that_it_was_started_with(data: Path) -> None:
    """By the digest that the controller has of its own, of the same files."""
    digests = [_case(data, **overrides).configuration for overrides in ({}, {"momentum": 0.5}, {"seed": 7})]
    assert digests[0] == digest_of(read_configuration(launch(data), "").as_dict())
    assert len(set(digests)) == 3


def _case(data: Path, **overrides: Any) -> Any:
    config = read_configuration(launch(data, **overrides), "")
    values = CaseValues(config.case, config.settings)
    return case_class(CASE)(MeasurementContext(data, config.measurement, values, torch.device("cpu")))


def test_data_of_another_case_are_told(tmp_path: Path, capsys: Any) -> None:
    with pytest.raises(FlagPerfError, match="no manifest"):
        run_here(capsys, launch(tmp_path))


def test_a_worker_that_nobody_has_started_is_told(data: Path, capsys: Any) -> None:
    with pytest.raises(FlagPerfError, match=r"environment(.|\n)*utils.roles"):
        run_here(capsys, launch(data))


def test_what_breaks_before_the_cases_work_stands_in_the_ranks_log(data: Path, tmp_path: Path) -> None:
    """A device that is not there, by the real launcher: the rank ends with 1, and says why last."""
    vendor = tmp_path / "nobody"
    wrong = LaunchArguments(CASE, data, "nvidia", CONFIG, "config_cpux1x2.py", True, vendor / "extern")
    code, _ = launch_ranks(tmp_path / "logs", wrong, 1)
    last = (tmp_path / "logs" / "rank0.out.log").read_text().strip().splitlines()[-2:]
    assert code == 1 and "PyTorch sees no cuda device" in last[0], last


def test_the_demo_is_small() -> None:
    demo = load_constants(CONFIG / "config_cpux1x2.py")
    assert demo["most_parameters"] <= 50_000 and demo["epochs_by_round"] == (1, 2, 3, 4)
    assert set(demo) - {"cpu_threads"} <= set(load_constants(CASE / "config/_base.py"))
    assert case_class(CASE).roles == ("controller", "worker")


NVIDIA = TRAINING / "nvidia/search-pytorch"
NVIDIA_CONFIGS = ("A100x1x8", "A100x2x8", "H100x1x8")


@pytest.mark.parametrize("name", NVIDIA_CONFIGS)
def test_nvidia_configs_change_what_they_may_and_share_every_batch_evenly(name: str) -> None:
    arguments = LaunchArguments(CASE, Path("/data"), "nvidia", NVIDIA / "config", f"config_{name}.py", True)
    config, parts = read_configuration(arguments, ""), parts_of_config(f"config_{name}")
    assert config.changed == () and parts
    assert config.case["batch_sizes"][0] == 448
    assert not any(size % parts[2] for size in config.case["batch_sizes"])
    assert config.case["precision"] == "fp16"
    assert config.case["search_seconds"] >= 3600


def test_every_nvidia_config_is_listed_here_and_in_the_readme() -> None:
    files = {path.stem.removeprefix("config_") for path in (NVIDIA / "config").glob("config_*.py")}
    assert files == set(NVIDIA_CONFIGS)
    readme = (NVIDIA / "README.md").read_text(encoding="utf-8")
    assert all(f"config_{name}.py" in readme for name in files)
