"""Training steps of the contenders of a comparison: ours by the driver's engine, a peer's as its users write it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from comparison import COMPILED, RATE, Options, Step
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
from benchmarks.driver.ranks import RankEnvironment
from utils.parameters import TrainingSettings


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


def peer_steps(
    name: str, make: Callable[[], nn.Module], options: Options, size: int, batches: Sequence[Any]
) -> dict[str, Step]:
    """A peer as it is and, unless the options say otherwise, compiled; `make` gives it with the first weights.

    It is called with a batch's values by their names, and gives what has a `loss`.
    """
    steps = {name: peer_step(make(), options.settings(size), batches)}
    if options.compiled:
        compiled: Any = torch.compile(make())
        steps[name + COMPILED] = peer_step(compiled, options.settings(size), batches)
    return steps


def peer_step(model: nn.Module, settings: TrainingSettings, batches: Sequence[Mapping[str, Any]]) -> Step:
    """A step as it is written where nothing is known of the model."""
    model.train()
    optimizer = make_optimizer(settings, model)
    enabled = settings.precision == "bf16"

    def step(number: int) -> float:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
            loss: Tensor = model(**batches[number % len(batches)]).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return float(loss.detach())

    return step
