"""Every shipped configuration of a case: its rate is above 0 until its cap, and any vendor may set its threads."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from pathlib import Path

import pytest

from benchmarks.driver.arguments import LaunchArguments
from benchmarks.driver.configuration import read_configuration
from benchmarks.driver.schedules import schedule_of
from utils.config_files import load_constants, parts_of_config
from utils.parameters import TrainingSettings

TRAINING = Path(__file__).parents[2] / "training"


def shipped() -> Iterator[Path]:
    """The configurations of every vendor for the cases that have a target."""
    for path in sorted(TRAINING.glob("*/*-*/config/config_*x*x*.py")):
        base = load_constants(case_of(path) / "config" / "_base.py")
        if any(name.startswith("target_") for name in base):
            yield path


def case_of(path: Path) -> Path:
    return TRAINING / "benchmarks" / Path(*path.parents[1].name.split("-"))


def steps_at_cap(settings: TrainingSettings, global_batch: int) -> int:
    """The number of steps after which training ends at the latest."""
    caps = [settings.max_steps] if settings.max_steps else []
    if settings.max_samples_termination:
        caps.append(ceil(settings.max_samples_termination / global_batch))
    return min(caps)


@pytest.mark.parametrize("path", list(shipped()), ids=lambda path: f"{path.parents[1].name}-{path.stem}")
def test_the_rate_is_not_0_before_the_cap(path: Path) -> None:
    case = case_of(path)
    target = next(n for n in load_constants(case / "config" / "_base.py") if n.startswith("target_"))
    arguments = LaunchArguments(
        case, Path("/data"), path.parents[2].name, path.parent, path.name, enable_extern_config=True
    )
    settings = read_configuration(arguments, target.removeprefix("target_")).driver
    parts = parts_of_config(path.stem)
    assert parts
    global_batch = settings.train_batch_size * settings.gradient_accumulation_steps * parts[1] * parts[2]
    last = steps_at_cap(settings, global_batch) - 1
    assert schedule_of(settings)(last) > 0, f"step {last} of {global_batch} samples"


@pytest.mark.parametrize(
    "path",
    sorted(TRAINING.glob("benchmarks/*/*/config/mutable_params.py")),
    ids=lambda path: path.parents[2].name,
)
def test_threads_are_how_a_chip_is_used_and_never_the_task(path: Path) -> None:
    """Else a run with half of them could not be compared with another one."""
    assert "cpu_threads" in load_constants(path)["mutable_params"]
