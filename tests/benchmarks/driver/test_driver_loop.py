"""The loop's bookkeeping, with a scripted engine and a clock that moves only when the script says so."""

from __future__ import annotations

import io
import itertools
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.driver.clock import PhaseClock
from benchmarks.driver.counters import TrainingCounters, is_evaluation_due
from benchmarks.driver.device import DeviceMemory
from benchmarks.driver.finished import finished_values
from benchmarks.driver.loop import Outcome, TrainingLoop
from benchmarks.driver.perf_log import PerfLog
from benchmarks.driver.run_state import Saver, Start
from tests.fakes.training_engines import ScriptedTraining
from utils.errors import FlagPerfError
from utils.events import Event, EventName, parse_line
from utils.parameters import TrainingSettings

SETTINGS = TrainingSettings(
    train_batch_size=4, max_steps=10, target=0.9, eval_interval_steps=4, log_freq=2, learning_rate=1.0
)


def train(
    engine: ScriptedTraining,
    settings: TrainingSettings = SETTINGS,
    *,
    data_seconds: float = 0.0,
    epoch: int = 1_000_000,
    start: Start | None = None,
    saver: Saver | None = None,
) -> tuple[Outcome, list[Event]]:
    log = io.StringIO()
    clock = PhaseClock(engine.synchronize, now=lambda: engine.now)
    loop = TrainingLoop(
        settings,
        "accuracy",
        engine,
        lambda step: 0.1 * step,
        PerfLog(engine.rank, log),
        clock,
        start=start,
        saver=saver,
    )
    outcome = loop.run(engine.steps(data_seconds, epoch))
    events = [parse_line(line) for line in log.getvalue().splitlines()]
    return outcome, [event for event in events if event is not None]


def finished(engine: ScriptedTraining, **options: Any) -> dict[str, Any]:
    outcome, _ = train(engine, **options)
    return finished_values(
        outcome, settings=SETTINGS, engine=engine, metric="accuracy", flops_formula="5 a sample and quarter"
    )


def test_events_come_in_the_documented_order() -> None:
    _, events = train(ScriptedTraining([0.5, 0.95]))
    names = [event.name for event in events]
    step = ["STEP_BEGIN", "STEP_END"]
    assert names == [
        "TRAIN_START", "EPOCH_BEGIN", *step, *step, "EVALUATE", *step, *step, "EVALUATE", "EPOCH_END", "TRAIN_END",
    ]  # fmt: skip
    last = [event for event in events if event.name == "STEP_END"][-1].value
    assert last["global_steps"] == 8
    assert last["num_trained_samples"] == 64
    assert last["learning_rate"] == pytest.approx(0.7)
    assert last["seq/s"] == pytest.approx(8.0)  # evaluations are not in it
    assert not last["end_training"]


def test_epochs_begin_and_end() -> None:
    _, events = train(ScriptedTraining([]), epoch=32)
    epochs = [(event.name, event.value["epoch"]) for event in events if event.name.startswith("EPOCH")]
    assert epochs == [(f"EPOCH_{end}", epoch) for epoch in range(3) for end in ("BEGIN", "END")]


def test_training_stops_at_the_target() -> None:
    outcome, events = train(ScriptedTraining([0.5, 0.95]))
    assert outcome.converged
    assert outcome.counters.steps == 8
    assert outcome.times.time_to_target == pytest.approx(8 * 1.0 + 2 * 0.5)
    evaluations = [event.value for event in events if event.name == "EVALUATE"]
    assert [value["end_training"] for value in evaluations] == [False, True]
    assert evaluations[-1]["target"] == 0.9
    assert evaluations[-1]["eval_time"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("cap", "steps"),
    [
        ({"max_steps": 6}, 6),
        ({"max_steps": None, "max_samples_termination": 41}, 6),
        ({"max_samples_termination": 16}, 2),
    ],
)
def test_training_stops_at_a_cap_and_is_evaluated_there(cap: dict[str, Any], steps: int) -> None:
    outcome, events = train(ScriptedTraining([0.1, 0.2, 0.3]), replace(SETTINGS, **cap))
    assert not outcome.converged
    assert outcome.counters.steps == steps
    assert outcome.times.time_to_target is None
    assert events[-3].name == "EVALUATE"
    assert events[-3].value["global_steps"] == steps
    assert [event for event in events if event.name == "STEP_END"][-1].value["end_training"]


def test_a_cap_that_meets_the_target_has_converged() -> None:
    outcome, _ = train(ScriptedTraining([0.95]), replace(SETTINGS, max_steps=3))
    assert outcome.converged


@pytest.mark.parametrize(
    ("before", "now", "due"),
    [(8, 16, False), (16, 24, True), (24, 32, False), (32, 40, True), (0, 100, True)],
)
def test_evaluation_every_n_samples_whatever_the_batch(before: int, now: int, due: bool) -> None:
    settings = replace(SETTINGS, eval_interval_steps=None, eval_interval_samples=20)
    assert is_evaluation_due(settings, TrainingCounters(samples=before), TrainingCounters(samples=now)) is due
    late = replace(settings, eval_iter_start_samples=50)
    assert is_evaluation_due(late, TrainingCounters(samples=before), TrainingCounters(samples=now)) is (
        due and now >= 50
    )


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_ends_the_run(bad: float) -> None:
    engine = ScriptedTraining([0.1], losses=iter([1.0, bad]))
    with pytest.raises(FlagPerfError, match="after step 4: training has diverged"):
        train(engine)


def test_data_that_end_are_an_error() -> None:
    engine = ScriptedTraining([])
    clock = PhaseClock(engine.synchronize, now=lambda: engine.now)
    loop = TrainingLoop(SETTINGS, "accuracy", engine, lambda step: 0.1, PerfLog(0, io.StringIO()), clock)
    with pytest.raises(FlagPerfError, match="data ended"):
        loop.run(itertools.islice(engine.steps(0.0), 3))


def test_times_add_up_and_rates_are_ordered() -> None:
    values = finished(ScriptedTraining([]), data_seconds=0.25)
    assert values["raw_train_time"] == pytest.approx(10 * 1.25 + 3 * 0.5)
    assert values["eval_time"] == pytest.approx(1.5)
    assert values["data_wait_time"] == pytest.approx(2.5)
    assert values["no_eval_time"] == pytest.approx(values["raw_train_time"] - values["eval_time"])
    assert values["pure_compute_time"] == pytest.approx(values["no_eval_time"] - values["data_wait_time"])
    assert values["p_whole"] < values["p_train"] < values["p_core"]
    assert values["p_core"] == pytest.approx(80 / 10)
    assert values["training_sequences_per_second"] == values["p_whole"]


def test_counters_are_summed_over_ranks() -> None:
    values = finished(ScriptedTraining([]))
    assert values["num_trained_samples"] == 80
    assert values["num_trained_tokens"] == 2 * 10 * 30
    assert values["model_flops_per_sample"] == pytest.approx(2 * 10 * 5.0 / 80)
    assert (values["global_batch_size"], values["world_size"], values["global_steps"]) == (8, 2, 10)
    assert values["mem_total_bytes"] is None
    assert values["baseline"] == 0.1


def test_device_memory_is_reported_where_there_is_one() -> None:
    values = finished(ScriptedTraining([], device_memory=DeviceMemory(1, 2, 3)))
    assert [values[f"mem_{kind}_bytes"] for kind in ("allocated", "reserved", "total")] == [1, 2, 3]


def test_a_slow_loader_moves_p_train_and_not_p_core() -> None:
    quick, slow = finished(ScriptedTraining([])), finished(ScriptedTraining([]), data_seconds=2.0)
    assert slow["p_core"] == pytest.approx(quick["p_core"])
    assert slow["p_train"] < 0.5 * quick["p_train"]
    assert slow["p_whole"] < quick["p_whole"]


def test_waiting_while_the_device_still_works_costs_nothing() -> None:
    values = finished(ScriptedTraining([], idle=False), data_seconds=2.0)
    assert values["data_wait_time"] == 0.0


def test_a_slow_evaluation_moves_p_whole_only() -> None:
    quick, slow = finished(ScriptedTraining([])), finished(ScriptedTraining([], eval_seconds=50.0))
    assert slow["p_core"] == pytest.approx(quick["p_core"])
    assert slow["p_train"] == pytest.approx(quick["p_train"])
    assert slow["p_whole"] < 0.5 * quick["p_whole"]


def test_a_saved_state_has_an_event_with_the_time_that_it_took() -> None:
    engine = ScriptedTraining([0.1, 0.2, 0.3])

    class Slow(Saver):
        """FAKE. Nothing is written."""

        def save(self, counters: TrainingCounters, train_time: float) -> None:
            engine.now += 3.0

    saver = Slow(engine, Path("nowhere"), {}, save_steps=4)
    outcome, events = train(engine, saver=saver)
    saved = [event.value for event in events if event.name == "CHECKPOINT"]
    assert [value["global_steps"] for value in saved] == [4, 8]
    assert [value["checkpoint_time"] for value in saved] == [pytest.approx(3.0)] * 2
    assert outcome.times.checkpoint == pytest.approx(6.0)


def test_finished_is_written_by_rank_0_only_and_names_its_caller() -> None:
    for rank, lines in ((0, 1), (1, 0)):
        log = io.StringIO()
        PerfLog(rank, log).write(EventName.FINISHED, {"loss": math.nan})
        assert len(log.getvalue().splitlines()) == lines
        if lines:
            event = parse_line(log.getvalue())
            assert event is not None
            assert (event.value, event.file) == ({"loss": None}, "test_driver_loop.py")
            assert event.time_ms > 0
