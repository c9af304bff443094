"""The training loop: steps, events, evaluation, target and cap. The same for every case and framework."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.driver.batches import Step
from benchmarks.driver.clock import PhaseClock, Times
from benchmarks.driver.counters import TrainingCounters, is_at_cap, is_evaluation_due
from benchmarks.driver.engine import TrainingEngine
from benchmarks.driver.perf_log import PerfLog
from benchmarks.driver.rank_times import DATA, rounded
from benchmarks.driver.run_state import Saver, Start
from benchmarks.driver.schedules import Schedule
from utils.errors import FlagPerfError
from utils.events import EventName
from utils.parameters import TrainingSettings


class DivergedError(FlagPerfError):
    """The loss is not finite. It is the sum over all ranks, so that each sees it at the same step, and ends."""


@dataclass(frozen=True)
class Outcome:
    """What training came to. `loss` is that of the last step, `metrics` those of the last evaluation.

    `counters` and `times` are of this part of the run: of all of it, unless it goes on with an earlier one.
    `rank_times`: of each part of a step that a rank does by itself the seconds, by rank, and `steps`, in how many.
    """

    converged: bool
    counters: TrainingCounters
    loss: float
    metrics: Mapping[str, float]
    times: Times
    failed_checkpoints: int | None = None  # None: none were to be saved
    rank_times: Mapping[str, Any] = field(default_factory=dict)


class TrainingLoop:
    """Trains until the target is met or a cap is reached, from `start` on."""

    def __init__(
        self,
        settings: TrainingSettings,
        metric: str,
        engine: TrainingEngine[Any],
        schedule: Schedule,
        perf_log: PerfLog,
        clock: PhaseClock,
        *,
        start: Start | None = None,
        saver: Saver | None = None,
    ) -> None:
        self.settings = settings
        self.metric = metric
        self.engine = engine
        self.schedule = schedule
        self.perf_log = perf_log
        self.clock = clock
        self.start = start or Start()
        self.saver = saver
        self.counters = self.start.counters
        self.metrics: Mapping[str, float] = {}
        self.time_to_target: float | None = None
        self._epoch: int | None = None
        self._logged = (self.counters.samples, 0.0)  # samples and training seconds at the last STEP_END

    def run(self, steps: Iterator[Step]) -> Outcome:
        """Train on `steps`. All times are this rank's."""
        self.engine.group.barrier()
        self.clock.begin("train")
        self.perf_log.write(EventName.TRAIN_START)
        ended = False
        while not ended:
            ended = self._step(steps)
        self.clock.end("train")
        self.perf_log.write(EventName.EPOCH_END, {"epoch": self._epoch})
        self.perf_log.write(EventName.TRAIN_END, {"global_steps": self.counters.steps})
        return Outcome(
            converged=self.time_to_target is not None,
            counters=self.counters.since(self.start.counters),
            loss=self._finite_loss(),
            metrics=self.metrics,
            times=self._times(),
            failed_checkpoints=None if self.saver is None else self.saver.failures,
            rank_times=self._rank_times(),
        )

    def _step(self, steps: Iterator[Step]) -> bool:
        """One optimizer step and what is due after it. True when training ends."""
        step = self._wait_for_data(steps)
        self._enter_epoch(step[0].epoch)
        before = self.counters
        after = before.after(step, self.engine.world_size)
        at_cap = is_at_cap(self.settings, after)
        is_logged = at_cap or after.steps % self.settings.log_freq == 0
        if is_logged:
            self.perf_log.write(EventName.STEP_BEGIN, {"global_steps": after.steps})
            self.engine.timer.begin()
        learning_rate = self.schedule(before.steps)
        self.engine.train_step(step, learning_rate)
        self.counters = after
        if is_logged:
            self._log_step(learning_rate, at_cap)
        if at_cap or is_evaluation_due(self.settings, before, after):
            self._evaluate(at_cap)
        ended = at_cap or self.time_to_target is not None
        if self.saver is not None and not ended and self.saver.is_due(after):
            self._save(self.saver)
        return ended

    def _wait_for_data(self, steps: Iterator[Step]) -> Step:
        """The next step's batches. It is waiting only if the device has run dry meanwhile."""
        asked = self.clock.now()
        try:
            step = next(steps)
        except StopIteration:
            raise FlagPerfError("the training data ended before training did") from None
        if self.engine.device.is_idle():
            self.clock.add("wait", self.clock.now() - asked)
        return step

    def _enter_epoch(self, epoch: int) -> None:
        if epoch == self._epoch:
            return
        if self._epoch is not None:
            self.perf_log.write(EventName.EPOCH_END, {"epoch": self._epoch})
        self.perf_log.write(EventName.EPOCH_BEGIN, {"epoch": epoch})
        self._epoch = epoch

    def _log_step(self, learning_rate: float, end_training: bool) -> None:
        loss = self._finite_loss()
        self.engine.timer.end()
        samples = self.counters.samples
        apart = self.clock.seconds("evaluation") + self.clock.seconds("checkpoint")
        seconds = self.clock.running("train") - apart
        value: dict[str, Any] = {
            "loss": loss,
            "epoch": self._epoch,
            "end_training": end_training,
            "global_steps": self.counters.steps,
            "num_trained_samples": samples,
            "learning_rate": learning_rate,
            "seq/s": (samples - self._logged[0]) / max(seconds - self._logged[1], 1e-9),
        }
        scale = self.engine.loss_scale()
        self.perf_log.write(EventName.STEP_END, value if scale is None else {**value, "loss_scale": scale})
        self._logged = (samples, seconds)

    def _evaluate(self, at_cap: bool) -> None:
        loss = self._finite_loss()
        self.clock.begin("evaluation")
        self.metrics = self.engine.evaluate()
        seconds = self.clock.end("evaluation")
        reached = self.metrics[self.metric] >= self.settings.target
        if reached:
            self.time_to_target = self.start.earlier_time + self.clock.running("train")
        self.perf_log.write(
            EventName.EVALUATE,
            {
                **self.metrics,
                "metric": self.metric,
                "target": self.settings.target,
                "loss": loss,
                "global_steps": self.counters.steps,
                "num_trained_samples": self.counters.samples,
                "eval_time": seconds,
                "end_training": at_cap or reached,
            },
        )

    def _save(self, saver: Saver) -> None:
        self._finite_loss()  # nobody wants to go on from weights that are lost
        self.clock.begin("checkpoint")
        saver.save(self.counters, self.start.earlier_time + self.clock.running("train"))
        seconds = self.clock.end("checkpoint")
        value = {"global_steps": self.counters.steps, "checkpoint_time": seconds}
        self.perf_log.write(EventName.CHECKPOINT, value)

    def _finite_loss(self) -> float:
        loss = self.engine.loss()
        if not math.isfinite(loss):
            raise DivergedError(
                f"the loss is {loss} after step {self.counters.steps}: training has diverged",
                where=f"rank {self.engine.rank}",
                remedy="lower learning_rate, lengthen warmup_steps, or use bf16 in place of fp16",
            )
        return loss

    def _rank_times(self) -> dict[str, Any]:
        """What each rank takes for its own part of a step, by rank: seconds of data as a mean of all steps."""
        steps = self.counters.since(self.start.counters).steps
        own = {**self.engine.timer.medians(), DATA: rounded(self.clock.seconds("wait") / steps)}
        ranks = self.engine.group.gather(own)
        return {"steps": self.engine.timer.steps, **{part: [each[part] for each in ranks] for part in own}}

    def _times(self) -> Times:
        return Times(
            init=self.clock.seconds("init"),
            train=self.clock.seconds("train"),
            evaluation=self.clock.seconds("evaluation"),
            wait=self.engine.group.max_of([self.clock.seconds("wait")])[0],
            time_to_target=self.time_to_target,
            checkpoint=self.clock.seconds("checkpoint"),
        )
