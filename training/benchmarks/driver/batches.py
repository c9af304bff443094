"""Batches, and the thread that makes them ready ahead of the training loop."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar


@dataclass(frozen=True)
class Batch:
    """A micro-batch of one rank.

    Attributes:
        inputs: what the case's model and loss take, in the host's memory; the driver moves it to the device.
        samples: number of samples.
        tokens: number of tokens that are not padding, or None where the case has no tokens.
        flops: model FLOPs that training on this batch takes (forward and backward), or None.
        loss_counts: of each part of the loss the number of its labels: the loss of a global batch is the
            sum over parts of (sum of the losses / number of labels), both over the whole global batch.
        epoch: of the global batch's first sample, from 0; the driver sets it.
    """

    inputs: Any
    samples: int
    tokens: int | None
    flops: float | None
    loss_counts: tuple[float, ...]
    epoch: int = 0


Step = Sequence[Batch]
Item = TypeVar("Item")


class Prefetcher(Generic[Item]):
    """Iterates over `items` in a thread of its own, `ahead` of them ready. An error there is raised here."""

    def __init__(self, items: Iterable[Item], ahead: int) -> None:
        self._ready: queue.Queue[tuple[str, Any]] = queue.Queue(maxsize=max(1, ahead))
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._fill, args=(items,), name="prefetch", daemon=True)
        self._thread.start()

    def __iter__(self) -> Iterator[Item]:
        return self

    def __next__(self) -> Item:
        kind, value = self._ready.get()
        if kind == "item":
            item: Item = value
            return item
        self._ready.put((kind, value))  # whoever asks again gets the same answer
        if kind == "error":
            raise value
        raise StopIteration

    def close(self) -> None:
        """End the thread: it does not go on filling memory after training."""
        self._stopped.set()
        while self._thread.is_alive():
            self._drain()
            self._thread.join(timeout=0.01)

    def _fill(self, items: Iterable[Item]) -> None:
        try:
            for item in items:
                self._ready.put(("item", item))
                if self._stopped.is_set():
                    return
            self._ready.put(("end", None))
        except BaseException as error:  # handed to the thread that asks
            self._ready.put(("error", error))

    def _drain(self) -> None:
        try:
            while True:
                self._ready.get_nowait()
        except queue.Empty:
            return
