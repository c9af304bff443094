"""The nvidia vendor's case configs: known parameters only, a batch that fits the file's name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from utils.config_files import load_constants

TRAINING = Path(__file__).parents[2] / "training"
CONFIGS = sorted(TRAINING.glob("nvidia/*-*/config/config_*.py"))
CHIPS = load_constants(TRAINING / "nvidia" / "vendor.py")["CHIPS"]
GPUS_PER_HOST = 8  # DGX and HGX

# Samples a step: published for A100, and kept for the others so that the published learning rate holds.
BERT_GLOBAL_BATCH = {
    "config_A100x1x1": 24,
    "config_A100x1x8": 768,
    "config_A100x2x8": 1536,
    "config_H100x1x1": 768,
    "config_H100x1x8": 768,
    "config_H200x1x1": 768,
    "config_H200x1x8": 768,
}


def case_dir(config: Path) -> Path:
    model, framework = config.parents[1].name.split("-")
    return TRAINING / "benchmarks" / model / framework


@pytest.fixture(params=CONFIGS, ids=lambda path: path.stem)
def config(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


def test_the_configs_that_are_promised_are_there() -> None:
    assert {path.stem for path in CONFIGS if path.parents[1].name == "bert-pytorch"} == set(BERT_GLOBAL_BATCH)


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
    match = re.fullmatch(r"config_(?P<chip>\w+)x(?P<nnodes>[1-9]\d*)x(?P<nproc>[1-9]\d*)", config.stem)
    assert match and match["chip"] in CHIPS
    assert int(match["nproc"]) <= GPUS_PER_HOST


@pytest.mark.parametrize("name", BERT_GLOBAL_BATCH)
def test_the_global_batch_is_what_the_learning_rate_is_for(name: str) -> None:
    config = TRAINING / "nvidia" / "bert-pytorch" / "config" / f"{name}.py"
    settings = {**load_constants(case_dir(config) / "config" / "_base.py"), **load_constants(config)}
    nnodes, nproc = map(int, name.split("x")[-2:])
    samples = settings["train_batch_size"] * settings["gradient_accumulation_steps"] * nnodes * nproc
    assert samples == BERT_GLOBAL_BATCH[name]
