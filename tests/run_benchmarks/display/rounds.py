"""Rounds to be shown: what rank 0 of a training or a measurement reports, event by event."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from run_benchmarks.display.progress import Progress
from run_benchmarks.names import nodes_of
from run_benchmarks.training_state import TrainingState
from tests.run_benchmarks.builders import START_MS, make_case
from utils.events import Event, EventName
from utils.parameters import KIND, MeasurementSettings

BEGUN = (
    Event(EventName.INIT_START, {"config": {"target": 0.5, "max_steps": 80}}),
    Event(EventName.INIT_EVALUATION, {"metric": "accuracy", "accuracy": 0.1}),
    Event(EventName.TRAIN_START),
)


def step(number: int, loss: float = 2.34567, rate: float = 812.34) -> Event:
    """The end of a step."""
    return Event(EventName.STEP_END, {"global_steps": number, "loss": loss, "seq/s": rate})


def evaluation(accuracy: float, target: float = 0.5) -> Event:
    """An evaluation."""
    return Event(EventName.EVALUATE, {"metric": "accuracy", "accuracy": accuracy, "target": target})


def operation(name: EventName, number: int, dtype: str, **value: object) -> Event:
    """The begin or the end of one of three operations."""
    place = {"global_steps": number, "max_steps": 3, "metric": dtype}
    return Event(name, {**place, **value})


def round_of(
    hosts: Sequence[str], *events: Event, case: str = "toy:pytorch:X1:2:1:1", measures: bool = False
) -> Progress:
    """A round on these hosts, all at the stage train, after these events, a second apart."""
    plan = make_case(hosts, name=case)
    plan = replace(plan, parameters={KIND: MeasurementSettings.kind}) if measures else plan
    nodes, state = nodes_of(plan, 1), TrainingState()
    progress = Progress(nodes, state, dict.fromkeys(nodes, "train"))
    for second, event in enumerate(events):
        timed = replace(event, time_ms=START_MS + 1000 * second)
        state.update(timed)
        progress.event(timed)
    return progress
