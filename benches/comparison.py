"""What the comparisons of a case with a plain implementation have in common.

Both train the same model (no dropout) from the same weights on the same batches of prepared text with the
padding that it has, in the same precision, with fused AdamW and gradient clipping, in one process. A step is
forward, loss, backward, clipping, optimizer. Making batches is part of neither: both get ready tensors, each in
the form in which it takes them. Both have the number of threads that is better for the plain one, one or all
cores: on a machine that does other work too, threads wait for each other.

The contenders take steps in turn; the ratio is that of the medians. The first losses are compared before: a
figure for different mathematics would mean nothing.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.driver.batches import Batch
from benchmarks.driver.configuration import Configuration
from benchmarks.driver.hooks import load_hooks
from benchmarks.driver.pytorch import hooks
from benchmarks.driver.pytorch.case import Context
from benchmarks.driver.pytorch.devices import Device
from benchmarks.driver.pytorch.engine import PytorchEngine
from benchmarks.driver.pytorch.optimizers import make_optimizer
from benchmarks.driver.pytorch.process_group import ProcessGroup
from benchmarks.driver.ranks import RankEnvironment, usable_cores
from utils.parameters import TrainingSettings

RATE = 1e-3
WARM_UP = 2  # steps of each contender that are not measured
SAME_LOSS = 0.02  # of the first step, in nats: bf16 rounds
OURS = "ours"
Step = Callable[[int], float]  # trains on one batch, by its number; returns the loss


@dataclass(frozen=True)
class Options:
    """How comparisons are made; threads: None for what is best for the plain contenders."""

    batches: int
    steps: int
    threads: int | None
    precision: str

    def settings(self, batch_size: int) -> TrainingSettings:
        """The driver's settings for a contender."""
        return TrainingSettings(
            train_batch_size=batch_size,
            max_steps=1,
            precision=self.precision,
            learning_rate=RATE,
            weight_decay_rate=0.01,
        )


@dataclass(frozen=True)
class Comparison:
    """The contenders of one size, `ours` among them; `title` says the model's and the batches' shape."""

    size: str
    title: str
    samples: int  # a step
    contenders: Mapping[str, Step]

    def ratio(self, options: Options) -> float:
        """Samples/s of ours over those of the fastest other; prints the table.

        Raises:
            SystemExit: the first losses differ.
        """
        losses = {name: step(0) for name, step in self.contenders.items()}
        if max(losses.values()) - min(losses.values()) > SAME_LOSS:
            raise SystemExit(f"{self.size}: the first losses differ: {losses}")
        torch.set_num_threads(options.threads or self._best_threads())
        seconds = _measure(self.contenders, options.steps)
        medians = {name: statistics.median(taken) for name, taken in seconds.items()}
        ours = medians.pop(OURS)
        ratio = min(medians.values()) / ours
        self._print(options, seconds, losses)
        print(f"ratio {ratio:.2f}", flush=True)
        return ratio

    def _best_threads(self) -> int:
        """One thread or all cores, whichever is better for the plain ones just now."""
        plain = {name: step for name, step in self.contenders.items() if name != OURS}
        times: dict[int, float] = {}
        for threads in {1, usable_cores()}:
            torch.set_num_threads(threads)
            times[threads] = min(statistics.median(taken) for taken in _measure(plain, steps=3).values())
        return min(times, key=lambda threads: times[threads])

    def _print(
        self, options: Options, seconds: Mapping[str, Sequence[float]], losses: Mapping[str, float]
    ) -> None:
        print(f"\n{self.size}: {self.title}, {options.precision}, {torch.get_num_threads()} threads")
        print(f"{'':24}{'samples/s':>12}{'ms/step':>10}{'least':>10}{'first loss':>12}")
        for name, taken in seconds.items():
            middle = statistics.median(taken)
            print(
                f"{name:24}{self.samples / middle:12.1f}{middle * 1e3:10.2f}{min(taken) * 1e3:10.2f}"
                f"{losses[name]:12.4f}"
            )


def read_options(description: str | None, **more: Mapping[str, Any]) -> tuple[Options, argparse.Namespace]:
    """The options of the command line; `more` are added to them, with argparse's words."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batches", type=int, default=16, help="different batches, trained on in turn")
    parser.add_argument("--steps", type=int, default=30, help="steps measured of each contender")
    parser.add_argument("--threads", type=int, help="of each contender (what is best for the plain one)")
    parser.add_argument("--precision", choices=("bf16", "fp32"), default="bf16")
    for name, words in more.items():
        parser.add_argument(f"--{name}", **words)
    found = parser.parse_args()
    return Options(found.batches, found.steps, found.threads, found.precision), found


def our_engine(case: type, settings: TrainingSettings, values: dict[str, Any]) -> PytorchEngine:
    """The driver's engine with a case of this class, one rank on the CPU; `values`: the case's constants."""
    device = Device("cpu", 0)
    config = Configuration(settings, values, ())
    group = ProcessGroup(RankEnvironment(), "gloo", device, 60)
    task = case(Context(Path(), settings, values, device.place))
    return PytorchEngine(config, task, group, device, load_hooks(hooks, None))


def our_step(engine: PytorchEngine, batches: Sequence[Batch]) -> Step:
    """A step as the driver's loop takes it."""

    def step(number: int) -> float:
        engine.train_step([batches[number % len(batches)]], RATE)
        return engine.loss()

    return step


def plain_step(
    model: nn.Module, settings: TrainingSettings, batches: Sequence[Any], loss_of: Callable[[Any], Tensor]
) -> Step:
    """A step as it is written where nothing is known of the model; `loss_of` a batch is the model's."""
    model.train()
    optimizer = make_optimizer(settings, model)
    enabled = settings.precision == "bf16"

    def step(number: int) -> float:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
            loss = loss_of(batches[number % len(batches)])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return float(loss.detach())

    return step


def _measure(contenders: Mapping[str, Step], steps: int) -> dict[str, list[float]]:
    """Seconds of each contender's steps, taken in turn; some before, to warm up, are left out."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(steps + WARM_UP):
        for name, step in contenders.items():
            begin = time.perf_counter()
            step(number)
            seconds[name].append(time.perf_counter() - begin)
    return {name: taken[WARM_UP:] for name, taken in seconds.items()}
