"""The nvidia vendor's case configs: parameters that a vendor may set, for chips and sizes that there are."""

from __future__ import annotations

from pathlib import Path

import pytest

from utils.config_files import load_constants, parts_of_config

TRAINING = Path(__file__).parents[2] / "training"
CONFIGS = sorted(TRAINING.glob("nvidia/*-*/config/config_*.py"))
CHIPS = load_constants(TRAINING / "nvidia" / "vendor.py")["CHIPS"]
GPUS_PER_HOST = 8  # DGX and HGX


def case_dir(config: Path) -> Path:
    model, framework = config.parents[1].name.split("-")
    return TRAINING / "benchmarks" / model / framework


@pytest.fixture(params=CONFIGS, ids=lambda path: path.stem)
def config(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


def test_every_name_is_a_parameter_of_the_case(config: Path) -> None:
    base = load_constants(case_dir(config) / "config" / "_base.py")
    unknown = set(load_constants(config)) - set(base)
    assert not unknown


def test_values_have_the_type_of_the_cases_own(config: Path) -> None:
    base = load_constants(case_dir(config) / "config" / "_base.py")
    for name, value in load_constants(config).items():
        assert type(value) is type(base[name]), name


def test_only_what_keeps_the_task_the_same_is_changed(config: Path) -> None:
    mutable = load_constants(case_dir(config) / "config" / "mutable_params.py")["mutable_params"]
    assert set(load_constants(config)) <= set(mutable)


def test_the_name_says_a_chip_that_the_vendor_has_and_a_size_that_a_host_has(config: Path) -> None:
    parts = parts_of_config(config.stem)
    assert parts and parts[0] in CHIPS
    assert parts[2] <= GPUS_PER_HOST
