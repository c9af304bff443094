"""When evaluations are due, for the tests of the cases' configurations."""

from __future__ import annotations

from benchmarks.driver.counters import TrainingCounters, is_evaluation_due
from utils.parameters import TrainingSettings


def samples_at_evaluations(settings: TrainingSettings, global_batch: int, count: int) -> list[int]:
    """The samples over all ranks after which the first `count` evaluations stand."""
    due: list[int] = []
    now = TrainingCounters()
    while len(due) < count:
        before, now = now, TrainingCounters(steps=now.steps + 1, samples=now.samples + global_batch)
        if is_evaluation_due(settings, before, now):
            due.append(now.samples)
    return due
