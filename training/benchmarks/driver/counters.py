"""How far training has come, when it is evaluated and when it ends: pure functions of counters."""

from __future__ import annotations

from dataclasses import dataclass, replace

from benchmarks.driver.batches import Step
from utils.parameters import TrainingSettings


@dataclass(frozen=True)
class TrainingCounters:
    """What has been trained.

    `steps` and `samples` count over all ranks; `tokens` and `flops` are of this rank until they are
    summed at the end, None where the case does not count them.
    """

    steps: int = 0
    samples: int = 0
    tokens: int | None = 0
    flops: float | None = 0.0

    def after(self, step: Step, world_size: int) -> TrainingCounters:
        """The counters after one more step, in which every rank has as many samples as this one."""
        tokens = _total([batch.tokens for batch in step])
        flops = _total([batch.flops for batch in step])
        return replace(
            self,
            steps=self.steps + 1,
            samples=self.samples + world_size * sum(batch.samples for batch in step),
            tokens=None if tokens is None or self.tokens is None else self.tokens + int(tokens),
            flops=None if flops is None or self.flops is None else self.flops + flops,
        )

    def since(self, start: TrainingCounters) -> TrainingCounters:
        """What has been trained since `start`, an earlier state of the same counters."""
        return TrainingCounters(
            steps=self.steps - start.steps,
            samples=self.samples - start.samples,
            tokens=None if self.tokens is None or start.tokens is None else self.tokens - start.tokens,
            flops=None if self.flops is None or start.flops is None else self.flops - start.flops,
        )


def _total(values: list[int | None] | list[float | None]) -> float | None:
    counted = [value for value in values if value is not None]
    return sum(counted) if len(counted) == len(values) else None


def is_at_cap(settings: TrainingSettings, counters: TrainingCounters) -> bool:
    """Has training used up its steps or samples?"""
    steps, samples = settings.max_steps, settings.max_samples_termination
    return (steps is not None and counters.steps >= steps) or (
        samples is not None and counters.samples >= samples
    )


def is_evaluation_due(settings: TrainingSettings, before: TrainingCounters, now: TrainingCounters) -> bool:
    """Has the step from `before` to `now` crossed a multiple of the evaluation interval?"""
    if now.samples < settings.eval_iter_start_samples:
        return False
    if settings.eval_interval_steps is not None:
        return now.steps % settings.eval_interval_steps == 0
    interval = settings.eval_interval_samples
    return interval is not None and now.samples // interval > before.samples // interval
