"""The configurations: the task as it is documented, and each vendor file over it."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.driver.arguments import LaunchArguments
from benchmarks.driver.configuration import Configuration, read_configuration
from benchmarks.driver.schedules import make_schedule
from benchmarks.glm.prepare.parameters import DEMO
from tests.benchmarks.common.evaluations import samples_at_evaluations
from utils.config_files import parts_of_config

TRAINING = Path(__file__).parents[3] / "training"
CASE = TRAINING / "benchmarks" / "glm" / "pytorch"
# Questions a step: published for A100, and kept for the others so that the published learning rate holds.
GLOBAL_BATCH = {"A100x1x1": 16, "A100x1x8": 64, "A100x2x8": 128} | dict.fromkeys(
    ("H100x1x1", "H100x1x8", "H200x1x1", "H200x1x8"), 64
)


def configuration(vendor: str = "", name: str = "") -> Configuration:
    folder = TRAINING / vendor / "glm-pytorch" / "config" if vendor else None
    file = f"config_{name}.py" if name else ""
    arguments = LaunchArguments(CASE, Path("/data"), vendor, folder, file, enable_extern_config=bool(vendor))
    return read_configuration(arguments, "exact_match")


def test_the_task_is_flagperfs() -> None:
    config = configuration()
    driver, case = config.driver, config.case
    assert (case["num_layers"], case["hidden_size"], case["num_attention_heads"]) == (24, 1024, 16)
    assert (case["vocab_size"], case["max_position_embeddings"]) == (30_592, 512)
    assert (driver.target, driver.max_samples_termination, driver.eval_interval_samples) == (
        0.80,
        5_553_080,
        19_200,
    )
    assert (driver.optimizer, driver.weight_decay_rate, driver.epsilon) == ("adamw", 0.1, 1e-8)
    assert (driver.beta_1, driver.beta_2, driver.max_grad_norm) == (0.9, 0.999, 1.0)


@pytest.mark.parametrize(
    ("step", "expected"),
    [(0, 1e-5 / 433), (432, 1e-5), (433, 1e-5), (2385, 5.5e-6), (4338, 1e-6), (80_000, 1e-6)],
)
def test_the_rate_rises_for_a_tenth_and_falls_to_a_tenth(step: int, expected: float) -> None:
    driver = configuration().driver
    rate = make_schedule(
        driver.lr_schedule,
        peak=driver.learning_rate,
        warmup_steps=driver.warmup_steps,
        decay_steps=driver.decay_steps or 0,
        end_factor=driver.end_learning_rate_factor,
    )
    assert rate(step) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("name", GLOBAL_BATCH)
def test_nvidia_configs_change_what_they_may_and_keep_the_batch_that_the_rate_is_for(name: str) -> None:
    config = configuration("nvidia", name)
    assert config.changed == ()
    parts, driver = parts_of_config(f"config_{name}"), config.driver
    assert parts
    samples = driver.train_batch_size * driver.gradient_accumulation_steps * parts[1] * parts[2]
    assert samples == GLOBAL_BATCH[name]
    assert driver.precision == ("fp16" if parts[0] == "A100" else "bf16")
    assert driver.learning_rate == 1e-5


@pytest.mark.parametrize("name", GLOBAL_BATCH)
def test_every_size_is_evaluated_after_as_many_questions_as_published(name: str) -> None:
    """FlagPerf's rule, every ceil(19,200 / global batch) steps, comes to 19,200 questions for each of its batches."""
    driver = configuration("nvidia", name).driver
    at = samples_at_evaluations(driver, GLOBAL_BATCH[name], 3)
    assert at == [19_200, 38_400, 57_600]
    assert driver.eval_iter_start_samples == 100


def test_every_nvidia_config_is_listed_here_and_in_the_readme() -> None:
    folder = TRAINING / "nvidia" / "glm-pytorch"
    files = {path.stem.removeprefix("config_") for path in (folder / "config").glob("config_*.py")}
    assert files == set(GLOBAL_BATCH)
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert all(f"config_{name}.py" in readme for name in files)


@pytest.mark.parametrize(("name", "ranks"), [("cpux1x1", 1), ("cpux1x2", 2), ("cpux2x1", 2)])
def test_the_demo_is_the_same_task_on_one_rank_and_two(name: str, ranks: int) -> None:
    config, alone = configuration("cpu", name), configuration("cpu", "cpux1x1")
    assert config.driver.train_batch_size * ranks == alone.driver.train_batch_size == 32
    assert config.driver.target == alone.driver.target < 1
    assert config.case["vocab_size"] == DEMO.vocab_size + 2  # start and end of a piece
    assert config.case["max_position_embeddings"] == DEMO.seq_length
