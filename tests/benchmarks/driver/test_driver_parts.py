"""What a run that saves, or goes on from what was saved, says of its times; with the loop's scripted engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.driver.counters import TrainingCounters
from benchmarks.driver.run_state import Continued, Saver, Start
from tests.benchmarks.driver.test_driver_loop import finished, train
from tests.fakes.training_engines import ScriptedTraining


class SlowSaver(Saver):
    """Takes its scripted seconds and writes nothing."""

    def save(self, counters: TrainingCounters, train_time: float) -> None:
        assert isinstance(self.engine, ScriptedTraining)
        self.engine.now += 50.0
        SAVED.append((counters.steps, train_time))


SAVED: list[tuple[int, float]] = []


def test_a_slow_checkpoint_moves_p_whole_only() -> None:
    SAVED.clear()
    quick, engine = finished(ScriptedTraining([])), ScriptedTraining([])
    slow = finished(engine, saver=SlowSaver(engine, Path(), {}, save_steps=5))
    assert [steps for steps, _ in SAVED] == [5]  # not after the last step: nothing is left to go on with
    assert SAVED[0][1] == pytest.approx(5 * 1.0 + 0.5)
    assert slow["checkpoint_time"] == pytest.approx(50.0)
    assert slow["raw_train_time"] == pytest.approx(quick["raw_train_time"] + 50.0)
    assert slow["no_eval_time"] == pytest.approx(quick["no_eval_time"])
    assert slow["p_train"] == pytest.approx(quick["p_train"])
    assert slow["p_core"] == pytest.approx(quick["p_core"])
    assert slow["p_whole"] < 0.5 * quick["p_whole"]
    assert quick["checkpoint_time"] == 0.0


def test_a_continued_run_counts_its_own_part_only() -> None:
    continued = Continued("step00000006.ckpt", step=6, samples=48, train_time=1000.0)
    start = Start(TrainingCounters(6, 48, 6 * 30, 6 * 5.0), continued)
    engine = ScriptedTraining([0.2, 0.95])
    outcome, events = train(engine, start=start)
    assert engine.rates[0] == pytest.approx(0.6)  # the schedule goes on
    assert [event.value["global_steps"] for event in events if event.name == "STEP_END"] == [8, 10]
    assert outcome.counters == TrainingCounters(4, 32, 4 * 30, 4 * 5.0)
    assert outcome.times.time_to_target == pytest.approx(1000.0 + 4 * 1.0 + 2 * 0.5)
    values = finished(ScriptedTraining([0.2, 0.95]), start=start)
    assert (values["num_trained_samples"], values["global_steps"], values["global_batch_size"]) == (32, 4, 8)
    assert values["p_core"] == pytest.approx(32 / 4.0)
    assert values["model_flops_per_sample"] == pytest.approx(2 * 4 * 5.0 / 32)
