"""PyTorch's process group."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import reduce
from typing import Any, ClassVar

import torch
import torch.distributed as dist

from benchmarks.driver import process_group
from benchmarks.driver.process_group import T
from benchmarks.driver.pytorch.flight_recorder import answer_with_record
from benchmarks.driver.ranks import RankEnvironment

_COMBINED: dict[Any, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    dist.ReduceOp.SUM: torch.add,
    dist.ReduceOp.MAX: torch.maximum,
}


class ProcessGroup(process_group.ProcessGroup):
    """By torch.distributed."""

    distributed: ClassVar[Any] = dist

    def meet(self) -> None:
        """Nothing to do: PyTorch's collectives wait as long as the group's timeout says."""

    def _join(self, environment: RankEnvironment) -> None:
        answer_with_record(self.rank)
        dist.init_process_group(
            self.backend,
            init_method="env://",
            timeout=timedelta(seconds=self.timeout_seconds),
            device_id=None if self.device.is_cpu else self.device.place,
        )

    def _address(self) -> str:
        return f"{os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')}"

    def _begin_sum(self, tensor: Any) -> Any:
        return dist.all_reduce(tensor, async_op=True)

    def _reduced(self, values: Sequence[float], operation: Any) -> list[float]:
        if not values:
            return []
        # As bytes, and reduced on the host: HCCL adds no fp64, and torch_mlu turns it into fp32 without a word.
        own = torch.tensor(list(values), dtype=torch.float64).view(torch.uint8).to(self.device.place)
        parts = [torch.empty_like(own) for _ in range(self.world_size)]
        dist.all_gather(parts, own)
        rows = torch.stack(parts).cpu().view(torch.float64)
        # One rank after the other: the same bits on every rank, whatever its processor.
        reduced: list[float] = reduce(_COMBINED[operation], rows.unbind()).tolist()
        return reduced

    def _gathered(self, own: T) -> list[T]:
        parts = [own] * self.world_size
        dist.all_gather_object(parts, own)
        return parts
