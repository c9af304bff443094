"""The ranks' process group, and the few collectives that the driver needs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta

import torch
import torch.distributed as dist

from benchmarks.driver.ranks import RankEnvironment
from utils.errors import FlagPerfError


class ProcessGroup:
    """All ranks. With one rank nothing is set up and every collective is the identity."""

    def __init__(
        self, environment: RankEnvironment, backend: str, device: torch.device, timeout_seconds: float
    ) -> None:
        self.rank, self.world_size = environment.rank, environment.world_size
        self.device = device
        if self.world_size == 1:
            return
        try:
            dist.init_process_group(
                backend,
                init_method="env://",
                timeout=timedelta(seconds=timeout_seconds),
                device_id=None if device.type == "cpu" else device,
            )
        except (RuntimeError, ValueError) as error:
            address = f"{os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')}"
            raise FlagPerfError(
                f"rank {self.rank} of {self.world_size} cannot join the {backend} process group: {error}",
                where=address,
                remedy="see that every rank has started and that each host reaches this address and port",
            ) from error

    def sum(self, tensor: torch.Tensor) -> dist.Work | None:
        """Begin to add up `tensor` over the ranks, in place. Wait on what is returned before it is read."""
        if self.world_size == 1:
            return None
        work: dist.Work | None = dist.all_reduce(tensor, async_op=True)
        return work

    def sum_of(self, values: Sequence[float]) -> list[float]:
        """The sum of each value over all ranks."""
        return self._reduced(values, dist.ReduceOp.SUM)

    def max_of(self, values: Sequence[float]) -> list[float]:
        """The largest of each value over all ranks."""
        return self._reduced(values, dist.ReduceOp.MAX)

    def barrier(self) -> None:
        """Wait for all ranks."""
        self.sum_of([0.0])

    def close(self) -> None:
        """Leave the group; only after the last collective of every rank."""
        if self.world_size > 1:
            dist.destroy_process_group()

    def _reduced(self, values: Sequence[float], operation: dist.ReduceOp.RedOpType) -> list[float]:
        if self.world_size == 1:
            return list(values)
        tensor = torch.tensor(list(values), dtype=torch.float64, device=self.device)
        dist.all_reduce(tensor, op=operation)
        reduced: list[float] = tensor.tolist()
        return reduced
