"""What the training loop asks of a framework."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from benchmarks.driver.batches import Step


@dataclass(frozen=True)
class DeviceMemory:
    """Bytes of one device: largest allocated, largest reserved by the framework, and what it has."""

    allocated: int
    reserved: int
    total: int


class Engine(Protocol):
    """A model, its data and its optimizer on the devices of all ranks.

    Every rank calls the same methods in the same order: most of them talk to the other ranks.
    """

    rank: int
    world_size: int

    def baseline(self) -> float | None:
        """The metric that a trivial answer reaches."""

    def training_steps(self) -> Iterator[Step]:
        """This rank's micro-batches of each optimizer step, endlessly."""

    def train_step(self, step: Step, learning_rate: float) -> None:
        """Forward, backward and optimizer. Returns before the device has finished where it can."""

    def loss(self) -> float:
        """Loss of the last step's global batch, in nats. Waits for the device."""

    def loss_scale(self) -> float | None:
        """Scale of the fp16 gradients, None without one."""

    def evaluate(self) -> dict[str, float]:
        """The case's metrics over the whole evaluation set, equal on every rank."""

    def synchronize(self) -> None:
        """Wait until the device has finished."""

    def is_idle(self) -> bool:
        """Has the device nothing to do? Does not wait."""

    def barrier(self) -> None:
        """Wait for all ranks."""

    def sum_over_ranks(self, values: Sequence[float]) -> list[float]:
        """The sum of each value over all ranks."""

    def max_over_ranks(self, values: Sequence[float]) -> list[float]:
        """The largest of each value over all ranks."""

    def memory(self) -> DeviceMemory | None:
        """This rank's device memory, None where the device has none of its own."""

    def close(self) -> None:
        """Leave the other ranks; nothing may be asked afterwards."""
