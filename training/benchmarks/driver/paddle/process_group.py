"""Paddle's process group."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Sequence
from typing import Any, ClassVar

import paddle
import paddle.distributed as dist
from paddle.base import core

from benchmarks.driver import process_group
from benchmarks.driver.process_group import T
from benchmarks.driver.ranks import RankEnvironment
from utils.errors import FlagPerfError

_MEETINGS = "flagperf/meetings"
_PAUSE_S = 0.02


class ProcessGroup(process_group.ProcessGroup):
    """By paddle.distributed.

    Paddle's gloo gives up a collective after 30 s, whatever is asked for. Before those at which ranks may
    arrive far apart, all ranks meet in the store, which waits as long as `timeout_seconds`.
    """

    distributed: ClassVar[Any] = dist
    _met = 0

    def _join(self, environment: RankEnvironment) -> None:
        # What Paddle reads when the group is made; the launcher has set who is who.
        os.environ["PADDLE_DISTRI_BACKEND"] = self.backend
        os.environ["PADDLE_PG_TIMEOUT"] = str(int(self.timeout_seconds * 1000))
        os.environ.setdefault(f"FLAGS_selected_{self.device.kind}s", str(environment.local_rank))
        if self.rank > 0:
            _wait_for(self._address(), self.timeout_seconds)
        dist.init_parallel_env()
        self._store: Any = core.create_or_get_global_tcp_store()

    def _address(self) -> str:
        return os.environ.get("PADDLE_MASTER", "")

    def meet(self) -> None:
        """Wait until every rank is here.

        Raises:
            FlagPerfError: one is not here in time.
        """
        if self.world_size == 1 or self.backend != "gloo":
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

    def _begin_sum(self, tensor: Any) -> Any:
        return dist.all_reduce(tensor, sync_op=False)

    def _reduced(self, values: Sequence[float], operation: Any) -> list[float]:
        tensor = paddle.to_tensor(list(values), dtype="float64")
        dist.all_reduce(tensor, op=operation)
        return [float(number) for number in tensor.numpy()]

    def _gathered(self, own: T) -> list[T]:
        parts: list[T] = []
        dist.all_gather_object(parts, own)
        return parts


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
