"""The ranks' process group, and the few collectives that the driver needs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from io import BytesIO
from typing import Any, ClassVar, TypeVar

from benchmarks.driver.device import Device
from benchmarks.driver.ranks import RankEnvironment
from utils.errors import FlagPerfError

_BROADCAST_BYTES = 1 << 26
T = TypeVar("T")


class ProcessGroup(ABC):
    """All ranks. With one rank nothing is set up and every collective is the identity.

    Every rank calls the same methods in the same order.
    """

    distributed: ClassVar[Any]
    """The framework's module of collectives."""

    def __init__(
        self, environment: RankEnvironment, backend: str, device: Device[Any], timeout_seconds: float
    ) -> None:
        self.rank, self.world_size = environment.rank, environment.world_size
        self.local_world_size = environment.local_world_size
        self.backend, self.device, self.timeout_seconds = backend, device, timeout_seconds
        if self.world_size == 1:
            return
        try:
            self._join(environment)
        except (OSError, RuntimeError, ValueError) as error:
            raise FlagPerfError(
                f"rank {self.rank} of {self.world_size} cannot join the {backend} process group: {error}",
                where=self._address(),
                remedy="see that every rank has started and that each host reaches this address and port",
            ) from error

    def sum(self, tensor: Any) -> Callable[[], object]:
        """Begin to add up `tensor` over the ranks, in place. Call what is returned before it is read."""
        if self.world_size == 1:
            return lambda: None
        sum_of_all = self._begin_sum(tensor)

        def wait() -> (
            None
        ):  # a function of Python's, so that the stacks of a rank that hangs say that it waits here
            sum_of_all.wait()

        return wait

    def sum_of(self, values: Sequence[float]) -> list[float]:
        """The sum of each value over all ranks."""
        return self._reduced(values, self.distributed.ReduceOp.SUM) if self.world_size > 1 else list(values)

    def max_of(self, values: Sequence[float]) -> list[float]:
        """The largest of each value over all ranks."""
        return self._reduced(values, self.distributed.ReduceOp.MAX) if self.world_size > 1 else list(values)

    def barrier(self) -> None:
        """Wait for all ranks."""
        self.meet()
        self.sum_of([0.0])

    @abstractmethod
    def meet(self) -> None:
        """Wait until every rank is here, before a collective that would not wait long enough by itself."""

    def gather(self, own: T) -> list[T]:
        """What every rank gives, by rank: small and picklable."""
        if self.world_size == 1:
            return [own]
        self.meet()
        return self._gathered(own)

    def broadcast(self, data: bytes | None) -> BytesIO:
        """The bytes of rank 0, in parts that fit beside a model on its device; the other ranks give None."""
        if self.world_size > 1:
            self.meet()
            source, received = BytesIO(data or b""), BytesIO()
            while part := self._of_rank_0(source.read(_BROADCAST_BYTES)):
                if data is None:
                    received.write(part)
            if data is None:
                received.seek(0)
                return received
        return BytesIO(data or b"")

    def close(self) -> None:
        """Leave the group; only after the last collective of every rank."""
        if self.world_size > 1:
            self.distributed.destroy_process_group()

    def _of_rank_0(self, part: bytes) -> bytes:
        parts = [part]
        self.distributed.broadcast_object_list(parts, src=0)
        return parts[0]

    @abstractmethod
    def _join(self, environment: RankEnvironment) -> None:
        """Set the group up; raises OSError, RuntimeError or ValueError."""

    @abstractmethod
    def _address(self) -> str:
        """Where the ranks meet."""

    @abstractmethod
    def _begin_sum(self, tensor: Any) -> Any:
        """The framework's handle of the collective."""

    @abstractmethod
    def _reduced(self, values: Sequence[float], operation: Any) -> list[float]: ...

    @abstractmethod
    def _gathered(self, own: T) -> list[T]: ...
