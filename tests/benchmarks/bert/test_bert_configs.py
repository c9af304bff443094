"""The configurations: the task as it is documented, and each vendor file over it."""

from __future__ import annotations

import re
from math import floor
from pathlib import Path

import pytest

from benchmarks.driver.arguments import LaunchArguments
from benchmarks.driver.configuration import Configuration, read_configuration
from utils.config_files import parts_of_config

TRAINING = Path(__file__).parents[3] / "training"
# Samples a step: published for A100; the others keep that of eight A100, or change the rate with it.
GLOBAL_BATCH = {
    "pytorch": {"A100x1x1": 96, "A100x1x8": 768, "A100x2x8": 1536}
    | dict.fromkeys(("H100x1x1", "H100x1x8", "H200x1x1", "H200x1x8"), 768),
    "paddle": {"A100x1x1": 12, "A100x1x8": 96, "A100x2x8": 192}
    | {"H100x1x1": 96, "H100x1x8": 384, "H200x1x1": 96, "H200x1x8": 384},
}
NVIDIA = [(framework, name) for framework, sizes in GLOBAL_BATCH.items() for name in sizes]
DEMOS = [(framework, name) for framework in GLOBAL_BATCH for name in ("cpux1x1", "cpux1x2", "cpux2x1")]


def configuration(framework: str, vendor: str = "", name: str = "") -> Configuration:
    folder = TRAINING / vendor / f"bert-{framework}" / "config" if vendor else None
    file = f"config_{name}.py" if name else ""
    case = TRAINING / "benchmarks" / "bert" / framework
    arguments = LaunchArguments(case, Path("/data"), vendor, folder, file, enable_extern_config=bool(vendor))
    return read_configuration(arguments, "mlm_accuracy")


def global_batch(config: Configuration, name: str) -> int:
    driver, parts = config.driver, parts_of_config(f"config_{name}")
    assert parts
    return driver.train_batch_size * driver.gradient_accumulation_steps * parts[1] * parts[2]


@pytest.mark.parametrize(("framework", "target"), [("pytorch", 0.71), ("paddle", 0.67)])
def test_the_task_is_flagperfs(framework: str, target: float) -> None:
    config = configuration(framework)
    driver, case = config.driver, config.case
    assert (case["num_hidden_layers"], case["hidden_size"], case["num_attention_heads"]) == (24, 1024, 16)
    assert (case["gelu"], case["pre_layer_norm"]) == ("tanh", False)
    assert case["checkpoint_mlm_accuracy"][case["init_checkpoint"]] == 0.34085
    assert (driver.target, driver.init_evaluation, driver.max_grad_norm) == (target, True, 1.0)
    assert (driver.weight_decay_rate, driver.beta_1, driver.beta_2, driver.epsilon) == (
        0.01,
        0.9,
        0.999,
        1e-6,
    )


@pytest.mark.parametrize(("framework", "name"), NVIDIA)
def test_nvidia_configs_change_what_they_may_and_have_the_batch_that_the_rate_is_for(
    framework: str, name: str
) -> None:
    config = configuration(framework, "nvidia", name)
    assert config.changed == ()
    samples = global_batch(config, name)
    assert samples == GLOBAL_BATCH[framework][name]
    published = {"pytorch": 3.5e-4, "paddle": 1e-4}[framework]
    assert config.driver.learning_rate == (2 * published if samples == 384 else published)
    assert config.driver.seed == 9031


def test_on_paddle_warm_up_and_decay_have_the_published_samples() -> None:
    for name in ("A100x1x8", "H100x1x1", "H100x1x8", "H200x1x1", "H200x1x8"):
        config = configuration("paddle", "nvidia", name)
        samples = global_batch(config, name)
        assert config.driver.warmup_steps * samples == 2000 * 96
        assert (
            (config.driver.decay_steps or 0) * samples == 10_000 * 96 == config.driver.max_samples_termination
        )


@pytest.mark.parametrize(("framework", "precision"), [("pytorch", "fp16"), ("paddle", "fp32")])
def test_a100_computes_in_the_published_precision(framework: str, precision: str) -> None:
    for name in ("A100x1x1", "A100x1x8", "A100x2x8"):
        assert configuration(framework, "nvidia", name).driver.precision == precision


@pytest.mark.parametrize(("framework", "name"), NVIDIA)
def test_the_evaluation_interval_is_mlperfs_for_the_global_batch(framework: str, name: str) -> None:
    config = configuration(framework, "nvidia", name)
    rule = floor(0.05 * (230.23 * global_batch(config, name) + 3_000_000) / 25_000) * 25_000
    assert config.driver.eval_interval_samples == rule
    assert config.driver.eval_interval_steps is None
    assert config.driver.eval_iter_start_samples <= rule


@pytest.mark.parametrize(
    ("name", "steps"), [("A100x1x1", 240_000), ("A100x1x8", 30_000), ("A100x2x8", 20_000)]
)
def test_the_schedule_on_pytorch_is_the_published_one(name: str, steps: int) -> None:
    assert configuration("pytorch", "nvidia", name).driver.decay_steps == steps


@pytest.mark.parametrize("framework", GLOBAL_BATCH)
def test_every_nvidia_config_is_listed_here_and_in_the_readme_with_its_batch(framework: str) -> None:
    folder = TRAINING / "nvidia" / f"bert-{framework}"
    names = {path.stem.removeprefix("config_") for path in (folder / "config").glob("config_*.py")}
    assert names == set(GLOBAL_BATCH[framework])
    rows = re.findall(
        r"config_(\w+)\.py\) \| [\dx ]+(?:= )?\b(\d+) \|", (folder / "README.md").read_text("utf-8")
    )
    assert {name: int(samples) for name, samples in rows} == GLOBAL_BATCH[framework]


@pytest.mark.parametrize(("framework", "name"), DEMOS)
def test_the_demo_is_the_same_task_on_one_rank_and_two(framework: str, name: str) -> None:
    config = configuration(framework, "cpu", name)
    assert global_batch(config, name) == 64
    assert config.driver.target == 0.30
    assert config.case["init_checkpoint"] == ""
