"""What moves p_whole, p_train and p_core: the real engines and loop, with a clock that is turned by hand.

No second of a machine decides here: a step, a wait for data and an evaluation take the seconds that the test says.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from benchmarks.driver.batches import Step
from benchmarks.driver.clock import PhaseClock
from benchmarks.driver.finished import finished_values
from benchmarks.driver.loop import TrainingLoop
from benchmarks.driver.perf_log import PerfLog
from tests.benchmarks.driver.engines import engine_starter
from tests.fakes.clock import HandClock

STEPS, SAMPLES = 8, 64


@dataclass(frozen=True)
class Seconds:
    """What a part of training takes."""

    step: float = 1.0
    data: float = 0.0
    evaluation: float = 0.25


class TimedEngine:
    """A real engine; after each of its parts the clock is turned."""

    def __init__(self, engine: Any, clock: HandClock, seconds: Seconds) -> None:
        self._engine, self._clock, self._seconds = engine, clock, seconds

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def train_step(self, step: Step, learning_rate: float) -> None:
        self._engine.train_step(step, learning_rate)
        self._clock.now += self._seconds.step

    def evaluate(self) -> dict[str, float]:
        metrics: dict[str, float] = self._engine.evaluate()
        self._clock.now += self._seconds.evaluation
        return metrics

    def steps(self) -> Iterator[Step]:
        for step in self._engine.training_steps():
            self._clock.now += self._seconds.data
            yield step


@pytest.fixture(params=["pytorch", "paddle"])
def finished(request: pytest.FixtureRequest, tmp_path: Path, data_dir: Path) -> Any:
    """A run's FINISHED values, given its seconds."""
    starter = engine_starter(request.param, tmp_path, data_dir, max_steps=STEPS)
    settings = starter.config.driver

    def values(seconds: Seconds) -> dict[str, Any]:
        clock = HandClock()
        engine: Any = TimedEngine(starter.start(), clock, seconds)
        phases = PhaseClock(engine.device.synchronize, now=clock)
        log = PerfLog(0, io.StringIO())
        loop = TrainingLoop(settings, starter.metric, engine, lambda step: 1e-3, log, phases)
        outcome = loop.run(engine.steps())
        return finished_values(
            outcome, settings=settings, engine=engine, metric=starter.metric, flops_formula=""
        )

    return values


def test_a_step_of_a_second_gives_the_rates_of_the_definitions(finished: Any) -> None:
    values = finished(Seconds(step=1.0, data=0.5, evaluation=2.0))
    assert values["num_trained_samples"] == SAMPLES
    assert values["raw_train_time"] == pytest.approx(8 * 1.0 + 8 * 0.5 + 2 * 2.0)
    assert (values["eval_time"], values["data_wait_time"]) == (pytest.approx(4.0), pytest.approx(4.0))
    assert values["no_eval_time"] == pytest.approx(12.0)
    assert values["pure_compute_time"] == pytest.approx(8.0)
    assert [values[rate] for rate in ("p_whole", "p_train", "p_core")] == pytest.approx(
        [64 / 16, 64 / 12, 64 / 8]
    )


def test_a_slow_loader_moves_p_train_and_not_p_core(finished: Any) -> None:
    quick, slow = finished(Seconds()), finished(Seconds(data=3.0))
    assert slow["p_core"] == pytest.approx(quick["p_core"])
    assert slow["p_train"] == pytest.approx(quick["p_train"] / 4)
    assert slow["p_whole"] < quick["p_whole"]


def test_a_slow_evaluation_moves_p_whole_only(finished: Any) -> None:
    quick, slow = finished(Seconds()), finished(Seconds(evaluation=100.0))
    assert slow["p_core"] == pytest.approx(quick["p_core"])
    assert slow["p_train"] == pytest.approx(quick["p_train"])
    assert slow["p_whole"] < 0.1 * quick["p_whole"]


@pytest.mark.parametrize("data", [0.0, 0.5])
@pytest.mark.parametrize("evaluation", [0.0, 4.0])
def test_the_rates_are_ordered_whatever_is_slow(finished: Any, data: float, evaluation: float) -> None:
    values = finished(Seconds(data=data, evaluation=evaluation))
    assert 0 < values["p_whole"] <= values["p_train"] <= values["p_core"]
    assert (values["p_train"] == values["p_core"]) == (data == 0)
    assert (values["p_whole"] == values["p_train"]) == (evaluation == 0)
