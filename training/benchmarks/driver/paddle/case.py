"""What a Paddle case brings: model, data, loss and metric."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from paddle import Tensor, nn

from benchmarks.driver.batches import Batch, Step
from utils.parameters import TrainingSettings


@dataclass(frozen=True)
class Context:
    """What a case is built from. `settings` are its own names of the configuration.

    `device` is Paddle's name of the device: `cpu`, `gpu:0`.
    """

    data_dir: Path
    driver: TrainingSettings
    settings: Mapping[str, Any]
    device: str = "cpu"
    rank: int = 0
    world_size: int = 1


class Case(Protocol):
    """A task. The driver imports `case.py` of the case's folder and calls its `Case(context)`."""

    metric: ClassVar[str]
    """Name of the quality metric, larger is better; `target_<metric>` in the configuration is its target."""

    flops_formula: ClassVar[str]
    """How `Batch.flops` is counted, in words."""

    def __init__(self, context: Context) -> None: ...

    def build_model(self) -> nn.Layer:
        """The model with its initial weights. The seed is set before."""

    def baseline(self) -> float | None:
        """The metric that a trivial answer reaches, so that a target can be judged; None where there is none."""

    def training_steps(self, first_step: int = 0) -> Iterator[Step]:
        """For each optimizer step from `first_step` on this rank's micro-batches; called once, consumed in a thread.

        What is random in them must follow from the seed and their place in the stream, so that a run that was
        cut off goes on with the same. A case that takes no `first_step` is read through until there.

        Inputs hold tensors in the host's memory: the thread must not touch the device.
        """

    def evaluation_batches(self) -> Iterable[Batch]:
        """This rank's part of the evaluation set, each sample on exactly one rank; the same each time."""

    def loss(self, model: nn.Layer, inputs: Any) -> Tensor:
        """(parts,) float32: of each part of the loss the *sum* over the micro-batch's labels.

        The driver divides by the labels of the whole global batch (`Batch.loss_counts`), so that the loss
        and its gradients do not depend on how the global batch is divided into micro-batches and ranks.
        """

    def evaluate(self, model: nn.Layer, inputs: Any) -> Tensor:
        """(sums,) of whatever the metrics need, to be added up over batches and ranks."""

    def metrics(self, sums: list[float]) -> dict[str, float]:
        """The metrics, `metric` among them, from the added up sums of `evaluate`."""
