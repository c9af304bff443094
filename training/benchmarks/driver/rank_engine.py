"""What the engines of all frameworks have in common: they ask the case, the process group and the device."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from io import BytesIO
from typing import Any, Generic, Protocol, TypeVar

from benchmarks.driver.batches import Step
from benchmarks.driver.case import DataCase
from benchmarks.driver.configuration import Configuration
from benchmarks.driver.engine import DeviceMemory
from benchmarks.driver.loader import Loader


class RankGroup(Protocol):
    """What is asked of a process group: Engine's methods of other names, see there."""

    rank: int
    world_size: int

    def barrier(self) -> None: ...
    def sum_of(self, values: Sequence[float]) -> list[float]: ...
    def max_of(self, values: Sequence[float]) -> list[float]: ...
    def gather(self, own: bytes) -> list[bytes]: ...
    def broadcast(self, data: bytes | None) -> BytesIO: ...
    def close(self) -> None: ...


class RankDevice(Protocol):
    """What is asked of a rank's device: Engine's methods, see there."""

    def synchronize(self) -> None: ...
    def is_idle(self) -> bool: ...
    def timed(self, work: Callable[[], None]) -> float: ...
    def memory(self) -> DeviceMemory | None: ...


CaseT = TypeVar("CaseT")
DataCaseT = TypeVar("DataCaseT", bound=DataCase)
GroupT = TypeVar("GroupT", bound=RankGroup)
DeviceT = TypeVar("DeviceT", bound=RankDevice)


class RankEngine(Generic[CaseT, GroupT, DeviceT]):
    """Implements `benchmarks.driver.engine.Engine`; no framework has a hand in it."""

    def __init__(self, case: CaseT, group: GroupT, device: DeviceT) -> None:
        self.case, self.group, self.device = case, group, device
        self.rank, self.world_size = group.rank, group.world_size

    def synchronize(self) -> None:
        """Wait for this rank's device."""
        self.device.synchronize()

    def timed(self, work: Callable[[], None]) -> float:
        """On this rank's device."""
        return self.device.timed(work)

    def memory(self) -> DeviceMemory | None:
        """Of this rank's device."""
        return self.device.memory()

    def barrier(self) -> None:
        """Wait for all ranks."""
        self.group.barrier()

    def sum_over_ranks(self, values: Sequence[float]) -> list[float]:
        """The sum of each value."""
        return self.group.sum_of(values)

    def max_over_ranks(self, values: Sequence[float]) -> list[float]:
        """The largest of each value."""
        return self.group.max_of(values)

    def gather(self, own: bytes) -> list[bytes]:
        """The bytes of every rank."""
        return self.group.gather(own)

    def broadcast(self, data: bytes | None) -> BytesIO:
        """The bytes of rank 0."""
        return self.group.broadcast(data)

    def close(self) -> None:
        """Leave the process group."""
        self.group.close()


class RankTrainingEngine(RankEngine[DataCaseT, GroupT, DeviceT]):
    """The part of `benchmarks.driver.engine.TrainingEngine` that no framework has a hand in."""

    def __init__(self, config: Configuration, case: DataCaseT, group: GroupT, device: DeviceT) -> None:
        super().__init__(case, group, device)
        self.config, self.settings = config, config.driver
        self.loader = Loader(case, self.settings, self.rank, self.world_size, self._staged)

    def baseline(self) -> float | None:
        """The case's."""
        return self.case.baseline()

    def training_steps(self, first_step: int = 0) -> Iterator[Step]:
        """This rank's."""
        return self.loader.training_steps(first_step)

    def is_idle(self) -> bool:
        """Has this rank's device nothing to do?"""
        return self.device.is_idle()

    def _staged(self, inputs: Any) -> Any:
        """A batch's inputs where this framework's device fetches them fastest; as they are, unless it says more."""
        return inputs

    def _sums_of_all_ranks(self, own: list[float]) -> list[float]:
        """A rank whose part of a small evaluation set is empty still takes part, with zeros."""
        width = int(self.group.max_of([float(len(own))])[0])
        return self.group.sum_of(own + [0.0] * (width - len(own)))


def global_label_counts(step: Step) -> list[float]:
    """Labels of each part of the loss in this rank's share of the global batch."""
    return [sum(counts) for counts in zip(*(batch.loss_counts for batch in step), strict=True)]


def gradients_sync(model: Any, *, is_last: bool) -> AbstractContextManager[None]:
    """Only the last micro-batch's backward pass talks to the other ranks; `model`: wrapped for them, or not."""
    no_sync = getattr(model, "no_sync", None)
    return nullcontext() if is_last or no_sync is None else no_sync()
