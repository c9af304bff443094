"""The ranks' process group, and the few collectives that the driver needs."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from datetime import timedelta
from io import BytesIO

import torch
import torch.distributed as dist

from benchmarks.driver.ranks import RankEnvironment
from utils.errors import FlagPerfError

_BROADCAST_BYTES = 1 << 26


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

    def gather(self, own: bytes) -> list[bytes]:
        """The bytes of every rank, by rank."""
        if self.world_size == 1:
            return [own]
        sizes = self.sum_of([float(len(own)) * (rank == self.rank) for rank in range(self.world_size)])
        padded = torch.zeros(int(max(sizes)), dtype=torch.uint8)
        padded[: len(own)] = torch.frombuffer(bytearray(own), dtype=torch.uint8)
        padded = padded.to(self.device)
        parts = [torch.empty_like(padded) for _ in sizes]
        dist.all_gather(parts, padded)
        return [part.cpu().numpy().tobytes()[: int(size)] for part, size in zip(parts, sizes, strict=True)]

    def broadcast(self, data: bytes | None) -> BytesIO:
        """The bytes of rank 0, in parts that fit beside a model on its device."""
        if self.world_size == 1 and data is not None:
            return BytesIO(data)
        size = int(self.max_of([float(len(data or b""))])[0])
        received = BytesIO()
        for begin, end in itertools.pairwise([*range(0, size, _BROADCAST_BYTES), size]):
            part = torch.empty(end - begin, dtype=torch.uint8, device=self.device)
            if data is not None:
                part.copy_(torch.frombuffer(bytearray(memoryview(data)[begin:end]), dtype=torch.uint8))
            dist.broadcast(part, src=0)
            if data is None:
                received.write(part.cpu().numpy().tobytes())
        received.seek(0)
        return received if data is None else BytesIO(data)

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
