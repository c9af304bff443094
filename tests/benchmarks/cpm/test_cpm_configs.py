"""The configurations: the task as it is documented, and each vendor file over it."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.cpm.prepare.parameters import DEMO
from benchmarks.driver.arguments import LaunchArguments
from benchmarks.driver.configuration import Configuration, read_configuration
from benchmarks.driver.schedules import make_schedule
from tests.benchmarks.common.evaluations import samples_at_evaluations
from utils.config_files import parts_of_config

TRAINING = Path(__file__).parents[3] / "training"
CASE = TRAINING / "benchmarks" / "cpm" / "pytorch"
# Samples a step: published for A100, and kept for the others so that the published learning rate holds.
GLOBAL_BATCH = {"A100x1x1": 192, "A100x1x8": 256, "A100x2x8": 3072} | dict.fromkeys(
    ("H100x1x1", "H100x1x8", "H200x1x1", "H200x1x8"), 256
)


def configuration(vendor: str = "", name: str = "") -> Configuration:
    folder = TRAINING / vendor / "cpm-pytorch" / "config" if vendor else None
    file = f"config_{name}.py" if name else ""
    arguments = LaunchArguments(CASE, Path("/data"), vendor, folder, file, enable_extern_config=bool(vendor))
    return read_configuration(arguments, "embedding_average")


def test_the_task_is_flagperfs() -> None:
    config = configuration()
    driver, case = config.driver, config.case
    assert (case["num_layers"], case["hidden_size"], case["num_attention_heads"]) == (24, 1024, 16)
    assert (case["vocab_size"], case["max_position_embeddings"]) == (30_000, 1024)
    assert (driver.target, driver.max_steps, driver.eval_interval_samples) == (0.92, 4_000, 20_000)
    assert (driver.optimizer, driver.weight_decay_rate, driver.epsilon) == ("adamw", 0.05, 1e-8)


@pytest.mark.parametrize("step", [0, 400, 800, 1_234, 2_600, 3_999])
def test_the_rate_is_that_of_flagperfs_schedule(step: int) -> None:
    """Its AnnealingLR: a linear rise over 800 steps, then a fall by 1/4000 of the peak a step."""
    driver = configuration().driver
    assert driver.warmup_steps == 800 and driver.decay_steps is not None
    rate = make_schedule(
        "linear",
        peak=5e-4,
        warmup_steps=800,
        decay_steps=driver.decay_steps,
        end_factor=driver.end_learning_rate_factor,
    )
    expected = 5e-4 * ((step + 1) / 800 if step < 800 else 1 - (step - 800) / 4_000)
    assert rate(step) == pytest.approx(expected)


@pytest.mark.parametrize("name", GLOBAL_BATCH)
def test_nvidia_configs_change_what_they_may_and_keep_the_batch_that_the_rate_is_for(name: str) -> None:
    config = configuration("nvidia", name)
    assert config.changed == ()
    parts, driver = parts_of_config(f"config_{name}"), config.driver
    assert parts
    samples = driver.train_batch_size * driver.gradient_accumulation_steps * parts[1] * parts[2]
    assert samples == GLOBAL_BATCH[name]
    assert driver.precision == ("fp16" if parts[0] == "A100" else "bf16")
    assert driver.learning_rate == 5e-4


@pytest.mark.parametrize("name", GLOBAL_BATCH)
def test_every_size_is_evaluated_after_as_many_samples_as_published(name: str) -> None:
    """At the first step that has 20,000 samples more; FlagPerf rounds each interval up to steps, so it stands later."""
    batch = GLOBAL_BATCH[name]
    at = samples_at_evaluations(configuration("nvidia", name).driver, batch, 3)
    published = -(-20_000 // batch) * batch
    assert at[0] == published
    for number, samples in enumerate(at, start=1):
        assert 0 <= samples - 20_000 * number < batch
        assert samples <= number * published


def test_every_nvidia_config_is_listed_here_and_in_the_readme() -> None:
    folder = TRAINING / "nvidia" / "cpm-pytorch"
    files = {path.stem.removeprefix("config_") for path in (folder / "config").glob("config_*.py")}
    assert files == set(GLOBAL_BATCH)
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert all(f"config_{name}.py" in readme for name in files)


@pytest.mark.parametrize(("name", "ranks"), [("cpux1x1", 1), ("cpux1x2", 2), ("cpux2x1", 2)])
def test_the_demo_is_the_same_task_on_one_rank_and_two(name: str, ranks: int) -> None:
    config, alone = configuration("cpu", name), configuration("cpu", "cpux1x1")
    assert config.driver.train_batch_size * ranks == alone.driver.train_batch_size == 64
    assert config.driver.target == alone.driver.target < 1
    assert config.case["vocab_size"] == DEMO.vocab_size
    assert config.case["max_position_embeddings"] == DEMO.seq_length
