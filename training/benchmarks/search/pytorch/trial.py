"""One trial: a network is built, trained by the shared driver's engine, and validated after every epoch."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
import torch._dynamo  # PyTorch does so with its first optimizer: seconds that are not to be in a trial's time
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.driver.batches import Prefetcher, Step
from benchmarks.driver.case import Dataset
from benchmarks.driver.configuration import Configuration
from benchmarks.driver.engine import Engine
from benchmarks.driver.pytorch.engine import PytorchEngine
from benchmarks.driver.schedules import schedule_of
from benchmarks.search.architecture import Architecture
from benchmarks.search.pytorch.data import ImageData, network_input
from benchmarks.search.pytorch.network import build
from utils.parameters import MeasurementSettings, TrainingSettings


def training_settings(case: Mapping[str, Any], driver: MeasurementSettings) -> TrainingSettings:
    """The driver's settings of every trial, by the case's own."""
    return TrainingSettings(
        eval_batch_size=case["eval_batch_size"],
        seed=driver.seed,
        optimizer="sgd",
        learning_rate=case["learning_rate"],
        beta_1=case["momentum"],
        max_grad_norm=None,
        precision=case["precision"],
        prefetch_batches=case["prefetch_batches"],
        cpu_threads=driver.cpu_threads,
        dist_timeout_seconds=driver.dist_timeout_seconds,
    )


class NotFiniteError(ValueError):
    """The loss of a trial is no number any more: what follows would train nothing."""


@dataclass(frozen=True)
class EpochResult:
    """What an epoch came to over all ranks of the worker, the same on each; `loss` is the mean of the training."""

    epoch: int
    accuracy: float
    loss: float
    training_samples: int
    validation_samples: int


@dataclass(frozen=True)
class TrialPlan:
    """How a trial is trained.

    state: the weights that it begins with; None: fresh ones. batch_size: of all ranks together. patience: epochs
    without a better accuracy after which it ends.
    """

    architecture: Architecture
    state: Mapping[str, Tensor] | None
    batch_size: int
    epochs: int
    patience: int
    label_smoothing: float


@dataclass
class TrialTask:
    """The trial as a case of the driver's."""

    plan: TrialPlan
    data: ImageData
    metric: ClassVar[str] = "accuracy"
    flops_formula: ClassVar[str] = "benchmarks/search/operations.py"

    def build_model(self) -> nn.Module:
        """In channels-last memory, as the images are."""
        network = build(self.plan.architecture)
        if self.plan.state is not None:
            network.load_state_dict(self.plan.state)
        return network.to(memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]

    def training_data(self) -> Dataset:
        return self.data.training()

    def evaluation_data(self) -> Dataset:
        return self.data.validation()

    def baseline(self) -> float | None:
        return None

    def loss(self, model: nn.Module, inputs: tuple[Tensor, Tensor]) -> Tensor:
        images, labels = inputs
        logits = model(network_input(images)).float()
        smoothing = self.plan.label_smoothing
        return functional.cross_entropy(logits, labels, reduction="sum", label_smoothing=smoothing).reshape(1)

    def evaluate(self, model: nn.Module, inputs: tuple[Tensor, Tensor]) -> Tensor:
        images, labels = inputs
        right = (model(network_input(images)).argmax(dim=-1) == labels).sum()
        return torch.stack([right, torch.full_like(right, len(labels))]).float()

    def metrics(self, sums: list[float]) -> dict[str, float]:
        right, count = sums
        return {"accuracy": right / count}


class TrialEngine(PytorchEngine):
    """The driver's engine, which also knows an epoch's mean loss and makes the ranks' statistics one."""

    _loss_sum: Any = 0.0

    def train_step(self, step: Step, learning_rate: float) -> None:
        """As the driver does it."""
        super().train_step(step, learning_rate)
        self._loss_sum = self._loss_sum + self._last_loss

    def mean_loss(self, steps: int) -> float:
        """Of the `steps` since it was asked last, each over its global batch. Waits for the device."""
        total, self._loss_sum = torch.as_tensor(self._loss_sum), 0.0
        self.group.sum(total)()
        return float(total) / steps

    def average_statistics(self) -> None:
        """Each rank's normalisations have seen the rank's own samples: from here on all have the mean of all."""
        for buffer in self.module.buffers():
            if self.world_size > 1 and buffer.is_floating_point():
                self.group.sum(buffer)()
                buffer /= self.world_size


class TrialTraining:
    """A trial on this rank's device; every rank of the worker does the same.

    Args:
        plan: what is trained, and how long.
        settings: of the driver: precision, learning rate, optimizer, seed.
        engine: the group, the device and the vendor's hooks.
    """

    def __init__(
        self, plan: TrialPlan, data: ImageData, settings: TrainingSettings, engine: Engine[Any]
    ) -> None:
        self.plan = plan
        self.steps = -(-data.facts.training_samples // plan.batch_size)
        settings = replace(settings, max_steps=self.steps * plan.epochs)  # there the learning rate is 0
        config = Configuration(settings, case={}, changed=(), metric=TrialTask.metric)
        self.learning_rate = schedule_of(settings)
        self.trainer = TrialEngine(config, TrialTask(plan, data), engine.group, engine.device, engine.hooks)

    def epochs(self) -> Iterator[EpochResult]:
        """One after the other, until none is left or the accuracy has not risen for too long.

        Raises:
            NotFiniteError: the loss is no number.
        """
        best_epoch, best = 0, -1.0
        for epoch in range(1, self.plan.epochs + 1):
            result = self._epoch(epoch)
            yield result
            if result.accuracy > best:
                best_epoch, best = epoch, result.accuracy
            if epoch - best_epoch >= self.plan.patience:
                return

    def state(self) -> dict[str, Tensor]:
        """The network's, on the CPU."""
        return {name: tensor.cpu() for name, tensor in self.trainer.module.state_dict().items()}

    def _epoch(self, epoch: int) -> EpochResult:
        trained = self._train(epoch)
        loss = self.trainer.mean_loss(self.steps)
        if not math.isfinite(loss):
            raise NotFiniteError(f"the loss is {loss} in epoch {epoch}")
        self.trainer.average_statistics()
        accuracy = self.trainer.evaluate()[TrialTask.metric]
        validated = self.trainer.loader.evaluation_samples or 0
        return EpochResult(epoch, accuracy, loss, trained, validated)

    def _train(self, epoch: int) -> int:
        """One epoch; the samples that it came to over all ranks."""
        first, samples = (epoch - 1) * self.steps, 0
        batches = self.trainer.loader.epoch_steps(epoch - 1, self.plan.batch_size)
        steps: Prefetcher[Step] = Prefetcher(batches, self.trainer.settings.prefetch_batches)
        try:
            for number, step in enumerate(steps, first):
                self.trainer.train_step(step, self.learning_rate(number))
                samples += sum(batch.samples for batch in step)
        finally:
            steps.close()
        return int(self.trainer.group.sum_of([float(samples)])[0])
