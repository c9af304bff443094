"""What the driver's loops ask of a framework."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Protocol

from benchmarks.driver.batches import Step


@dataclass(frozen=True)
class DeviceMemory:
    """Bytes of one device: largest allocated, largest reserved by the framework, and what it has."""

    allocated: int
    reserved: int
    total: int


class Engine(Protocol):
    """This rank's device, and the other ranks.

    Every rank calls the same methods in the same order: most of them talk to the other ranks.
    """

    rank: int
    world_size: int

    def synchronize(self) -> None:
        """Wait until the device has finished."""

    def timed(self, work: Callable[[], None]) -> float:
        """Seconds that the device takes for what `work` gives it, from idle to idle, by the device's own events.

        On a CPU by the monotonic clock.
        """

    def memory(self) -> DeviceMemory | None:
        """This rank's device memory, None where the device has none of its own."""

    def barrier(self) -> None:
        """Wait for all ranks."""

    def sum_over_ranks(self, values: Sequence[float]) -> list[float]:
        """The sum of each value over all ranks."""

    def max_over_ranks(self, values: Sequence[float]) -> list[float]:
        """The largest of each value over all ranks."""

    def gather(self, own: bytes) -> list[bytes]:
        """The bytes of every rank, by rank."""

    def broadcast(self, data: bytes | None) -> BytesIO:
        """The bytes of rank 0, to be read from their begin; the others give None."""

    def close(self) -> None:
        """Leave the other ranks; nothing may be asked afterwards."""


class TrainingEngine(Engine, Protocol):
    """A model, its data and its optimizer on the devices of all ranks."""

    def baseline(self) -> float | None:
        """The metric that a trivial answer reaches."""

    def training_steps(self, first_step: int = 0) -> Iterator[Step]:
        """This rank's micro-batches of each optimizer step from `first_step` (from 0) on, endlessly."""

    def train_step(self, step: Step, learning_rate: float) -> None:
        """Forward, backward and optimizer. Returns before the device has finished where it can."""

    def loss(self) -> float:
        """Loss of the last step's global batch, in nats. Waits for the device."""

    def loss_scale(self) -> float | None:
        """Scale of the fp16 gradients, None without one."""

    def evaluate(self) -> dict[str, float]:
        """The case's metrics over the whole evaluation set, equal on every rank."""

    def is_idle(self) -> bool:
        """Has the device nothing to do? Does not wait."""

    def state(self) -> Any:
        """Model, optimizer and scaler: plain data and the framework's tensors. The same on every rank."""

    def load_state(self, state: Any) -> None:
        """Take over what `state` gave, here or in an earlier process."""

    def random_state(self) -> Any:
        """Of the random generators of the framework that this rank draws from."""

    def load_random_state(self, state: Any) -> None:
        """Take over what `random_state` gave."""

    def save(self, state: Any, target: Path | BytesIO) -> None:
        """Write plain data and tensors.

        Raises:
            OSError: the disk does not take it.
            FlagPerfError: there is something else in it.
        """

    def load(self, source: BytesIO) -> Any:
        """What `save` wrote."""
