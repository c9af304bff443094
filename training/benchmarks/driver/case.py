"""What a case brings, whatever its framework; `driver/<framework>/case.py` says it in that framework's types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, NoReturn, Protocol, TypeVar

from benchmarks.driver.batches import Batch
from benchmarks.driver.sampling import Samples
from utils.errors import FlagPerfError, nearest
from utils.parameters import TrainingSettings

DeviceT = TypeVar("DeviceT")
SettingsT = TypeVar("SettingsT")
ModelT = TypeVar("ModelT")
TensorT_co = TypeVar("TensorT_co", covariant=True)


class CaseValues(dict[str, Any]):
    """The case's own names of the configuration. One that is not there is the author's mistake, and said so."""

    def __init__(self, values: Mapping[str, Any], driver: object) -> None:
        super().__init__(values)
        self._driver = driver

    def __missing__(self, name: str) -> NoReturn:
        if hasattr(self._driver, name):
            remedy = f"it is a setting of the driver: read context.driver.{name}"
        else:
            remedy = nearest(name, self) or f"add {name} to _base.py, which has {', '.join(self) or 'none'}"
        message = f"the case reads the setting {name!r}, which its config/_base.py does not have"
        raise FlagPerfError(message, where="context.settings", remedy=remedy)


@dataclass(frozen=True)
class Context(Generic[SettingsT, DeviceT]):
    """What a case is built from.

    Attributes:
        data_dir: the case's data directory.
        driver: the driver's settings for cases of its kind.
        settings: the case's own names of the configuration.
        device: this rank's, as the framework calls it.
        ragged_attention: whether the framework has attention for rows as they lie, without padding, on this device.
    """

    data_dir: Path
    driver: SettingsT
    settings: Mapping[str, Any]
    device: DeviceT
    ragged_attention: bool = False


@dataclass(frozen=True)
class Dataset:
    """Samples that lie as rows in one shard or in several.

    Attributes:
        rows: how many there are; of several shards, how many the shard of a number (from 0) has, which is
            asked when that shard's turn comes.
        batch: makes the batch of the given samples, in their order. Called in a thread of its own, which
            must not touch the device; what is random in it must follow from the samples.
        shards: how many there are.
    """

    rows: int | Callable[[int], int]
    batch: Callable[[Samples], Batch]
    shards: int = 1

    def rows_of(self, shard: int) -> int:
        """Samples of a shard."""
        return self.rows if isinstance(self.rows, int) else self.rows(shard)


@dataclass(frozen=True)
class InitialMetric:
    """What the metric is before training, of weights for which that is published.

    Attributes:
        value: the metric.
        tolerance: by how much it may differ.
        checkpoint: the file that the weights are from.
    """

    value: float
    tolerance: float
    checkpoint: Path


class DataCase(Protocol):
    """The part of a case that no framework has a hand in: its data."""

    def training_data(self) -> Dataset:
        """The training set; asked once. The driver shuffles it and divides it among steps and ranks."""

    def evaluation_data(self) -> Dataset:
        """The evaluation set; asked once. The driver keeps its batches: they are the same each time."""

    def baseline(self) -> float | None:
        """The metric that a trivial answer reaches, so that a target can be judged; None where there is none."""


class Case(DataCase, Protocol[ModelT, TensorT_co]):
    """A task. The driver imports `case.py` of the case's folder and calls its `Case(context)`.

    A case may also have `initial_metric() -> InitialMetric | None`: a run whose evaluation before training gives
    anything else is refused, because its weights or data are not those of the task.
    """

    metric: ClassVar[str]
    """Name of the quality metric, larger is better; `target_<metric>` in the configuration is its target."""

    flops_formula: ClassVar[str]
    """How `Batch.flops` is counted, in words."""

    def __init__(self, context: Context[TrainingSettings, Any]) -> None: ...

    def build_model(self) -> ModelT:
        """The model with its initial weights, on the CPU. The seed is set before."""

    def loss(self, model: ModelT, inputs: Any) -> TensorT_co:
        """(parts,) float32: of each part of the loss the *sum* over the micro-batch's labels.

        The driver divides by the labels of the whole global batch (`Batch.loss_counts`), so that the loss
        and its gradients do not depend on how the global batch is divided into micro-batches and ranks.
        """

    def evaluate(self, model: ModelT, inputs: Any) -> TensorT_co:
        """(sums,) of whatever the metrics need, to be added up over batches and ranks."""

    def metrics(self, sums: list[float]) -> dict[str, float]:
        """The metrics, `metric` among them, from the added up sums of `evaluate`."""
