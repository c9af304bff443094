"""The ranks' process group, and the few collectives that the driver needs."""

from __future__ import annotations

import itertools
import os
import socket
import time
from collections.abc import Sequence
from io import BytesIO
from typing import Any

import numpy as np
import paddle
import paddle.distributed as dist
from paddle.base import core

from benchmarks.driver.paddle.devices import Device
from benchmarks.driver.paddle.tensors import numbers_of
from benchmarks.driver.ranks import RankEnvironment
from utils.errors import FlagPerfError

_MEETINGS = "flagperf/meetings"
_PAUSE_S = 0.02
_BROADCAST_BYTES = 1 << 26


class ProcessGroup:
    """All ranks. With one rank nothing is set up and every collective is the identity.

    Paddle's gloo gives up a collective after 30 s, whatever is asked for. Before those at which ranks may
    arrive far apart, all ranks meet in the store, which waits as long as `timeout_seconds`.
    """

    def __init__(
        self, environment: RankEnvironment, backend: str, device: Device, timeout_seconds: float
    ) -> None:
        self.rank, self.world_size = environment.rank, environment.world_size
        self.timeout_seconds = timeout_seconds
        self.needs_meetings = backend == "gloo"
        self._met = 0
        if self.world_size == 1:
            return
        # What Paddle reads when the group is made; the launcher has set who is who.
        os.environ["PADDLE_DISTRI_BACKEND"] = backend
        os.environ["PADDLE_PG_TIMEOUT"] = str(int(timeout_seconds * 1000))
        os.environ.setdefault(f"FLAGS_selected_{device.kind}s", str(environment.local_rank))
        address = os.environ.get("PADDLE_MASTER", "")
        try:
            if self.rank > 0:
                _wait_for(address, timeout_seconds)
            dist.init_parallel_env()
            self._store: Any = core.create_or_get_global_tcp_store()
        except (OSError, RuntimeError, ValueError) as error:
            raise FlagPerfError(
                f"rank {self.rank} of {self.world_size} cannot join the {backend} process group: {error}",
                where=address,
                remedy="see that every rank has started and that each host reaches this address and port",
            ) from error

    def sum(self, tensor: paddle.Tensor) -> Any:
        """Begin to add up `tensor` over the ranks, in place. Wait on what is returned before it is read."""
        return None if self.world_size == 1 else dist.all_reduce(tensor, sync_op=False)

    def sum_of(self, values: Sequence[float]) -> list[float]:
        """The sum of each value over all ranks."""
        return self._reduced(values, dist.ReduceOp.SUM)

    def max_of(self, values: Sequence[float]) -> list[float]:
        """The largest of each value over all ranks."""
        return self._reduced(values, dist.ReduceOp.MAX)

    def barrier(self) -> None:
        """Wait for all ranks."""
        self.meet()
        self.sum_of([0.0])

    def meet(self) -> None:
        """Wait until every rank is here.

        Raises:
            FlagPerfError: one is not here in time.
        """
        if self.world_size == 1 or not self.needs_meetings:
            return
        self._met += 1
        expected = self._met * self.world_size
        end = time.monotonic() + self.timeout_seconds
        here = self._store.add(_MEETINGS, 1)
        while here < expected:
            if time.monotonic() > end:
                raise FlagPerfError(
                    f"rank {self.rank} waited {self.timeout_seconds:g} s for {expected - here} other ranks",
                    where="this rank's process",
                    remedy="see what holds them up, or raise dist_timeout_seconds",
                )
            time.sleep(_PAUSE_S)
            here = self._store.add(_MEETINGS, 0)

    def gather(self, own: bytes) -> list[bytes]:
        """The bytes of every rank, by rank."""
        if self.world_size == 1:
            return [own]
        self.meet()
        sizes = self.sum_of([float(len(own)) * (rank == self.rank) for rank in range(self.world_size)])
        padded = np.zeros(int(max(sizes)), dtype=np.uint8)
        padded[: len(own)] = np.frombuffer(own, dtype=np.uint8)
        parts: list[paddle.Tensor] = []
        dist.all_gather(parts, paddle.to_tensor(padded))
        return [part.numpy().tobytes()[: int(size)] for part, size in zip(parts, sizes, strict=True)]

    def broadcast(self, data: bytes | None) -> BytesIO:
        """The bytes of rank 0, in parts that fit beside a model on its device."""
        if self.world_size == 1 and data is not None:
            return BytesIO(data)
        self.meet()
        size = int(self.max_of([float(len(data or b""))])[0])
        received = BytesIO()
        for begin, end in itertools.pairwise([*range(0, size, _BROADCAST_BYTES), size]):
            own = bytes(end - begin) if data is None else data[begin:end]
            part = paddle.to_tensor(np.frombuffer(own, dtype=np.uint8))
            dist.broadcast(part, src=0)
            if data is None:
                received.write(part.numpy().tobytes())
        received.seek(0)
        return received if data is None else BytesIO(data)

    def close(self) -> None:
        """Leave the group; only after the last collective of every rank."""
        if self.world_size > 1:
            dist.destroy_process_group()

    def _reduced(self, values: Sequence[float], operation: Any) -> list[float]:
        if self.world_size == 1:
            return list(values)
        tensor = paddle.to_tensor(list(values), dtype="float64")
        dist.all_reduce(tensor, op=operation)
        return numbers_of(tensor)


def _wait_for(address: str, timeout_seconds: float) -> None:
    """Wait until rank 0 listens: Paddle itself would wait 900 s, three seconds at a time."""
    host, _, port = address.rpartition(":")
    end = time.monotonic() + timeout_seconds
    while True:
        try:
            socket.create_connection((host, int(port)), timeout=min(timeout_seconds, 10.0)).close()
            return
        except (ConnectionError, TimeoutError, socket.gaierror) as error:
            if time.monotonic() > end:
                raise TimeoutError(f"no answer within {timeout_seconds:g} s ({error})") from None
            time.sleep(_PAUSE_S)
