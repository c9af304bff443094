"""FAKE engines, at the driver's border to the frameworks: calls take the scripted seconds, and no model runs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, is_dataclass, replace
from functools import cached_property
from typing import Any

from benchmarks.driver.batches import Batch, Step
from benchmarks.driver.device import DeviceMemory
from benchmarks.driver.rank_times import RankTimer


@dataclass
class ScriptedTraining:
    """Takes the scripted seconds and returns the scripted values."""

    accuracies: list[float]
    losses: Iterator[float] = field(default_factory=lambda: itertools.repeat(1.5))
    step_seconds: float = 1.0
    eval_seconds: float = 0.5
    rank: int = 0
    world_size: int = 2
    idle: bool = True
    device_memory: DeviceMemory | None = None
    now: float = 100.0
    rates: list[float] = field(default_factory=list)

    @property
    def group(self) -> Any:
        return self

    @property
    def device(self) -> Any:
        return self

    @cached_property
    def timer(self) -> RankTimer:
        return RankTimer(self.device)

    def baseline(self) -> float | None:
        return 0.1

    def training_steps(self) -> Iterator[Step]:
        return self.steps(0.0)

    def steps(self, data_seconds: float, samples_an_epoch: int = 1_000_000) -> Iterator[Step]:
        for number in itertools.count():
            self.now += data_seconds
            epoch = number * 8 // samples_an_epoch
            yield [Batch(None, samples=4, tokens=30, flops=5.0, loss_counts=(1.0,), epoch=epoch)]

    def train_step(self, step: Step, learning_rate: float) -> None:
        self.now += self.step_seconds
        self.rates.append(learning_rate)

    def loss(self) -> float:
        return next(self.losses)

    def loss_scale(self) -> float | None:
        return None

    def evaluate(self) -> dict[str, float]:
        self.now += self.eval_seconds
        return {"accuracy": self.accuracies.pop(0) if self.accuracies else 0.0}

    def synchronize(self) -> None: ...

    def gather(self, own: Any) -> list[Any]:
        return [own] * self.world_size

    def is_idle(self) -> bool:
        return self.idle

    def barrier(self) -> None: ...

    def sum_of(self, values: Sequence[float]) -> list[float]:
        return [value * self.world_size for value in values]

    def max_of(self, values: Sequence[float]) -> list[float]:
        return list(values)

    def memory(self) -> DeviceMemory | None:
        return self.device_memory

    def close(self) -> None: ...


@dataclass
class ScriptedMeasurement:
    """Each call takes the scripted seconds, the last ones for ever.

    `others` is what a second rank would have measured, by name; none: this rank is alone.
    """

    seconds: Iterable[float]
    others: dict[str, Any] | None = None
    rank: int = 0
    calls: int = 0
    windows: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        *first, last = self.seconds
        self._script = itertools.chain(first, itertools.repeat(last))
        self.world_size = 1 if self.others is None else 2

    @property
    def group(self) -> Any:
        return self

    @property
    def device(self) -> Any:
        return self

    def call(self) -> None:
        self.calls += 1

    def timed(self, work: Callable[[], None]) -> float:
        before = self.calls
        work()
        self.windows.append(self.calls - before)
        return next(self._script) * self.windows[-1]

    def synchronize(self) -> None: ...

    def barrier(self) -> None: ...

    def memory(self) -> DeviceMemory | None:
        return None

    def sum_of(self, values: Sequence[float]) -> list[float]:
        return list(values)

    def max_of(self, values: Sequence[float]) -> list[float]:
        return list(values)

    def gather(self, own: Any) -> list[Any]:
        if self.others is None:
            return [own]
        return [own, replace(own, **self.others) if is_dataclass(own) else ""]

    def close(self) -> None: ...
