"""Batches, and the thread that makes them ready ahead of the training loop."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, is_dataclass, replace
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
        self._items = iter(items)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="prefetch")
        self._ready = deque(self._thread.submit(next, self._items) for _ in range(max(1, ahead)))

    def __iter__(self) -> Iterator[Item]:
        return self

    def __next__(self) -> Item:
        item = self._ready[0].result()  # an error stays where it is: whoever asks again gets the same answer
        self._ready.popleft()
        self._ready.append(self._thread.submit(next, self._items))
        return item

    def close(self) -> None:
        """End the thread: it does not go on filling memory after training."""
        self._thread.shutdown(cancel_futures=True)


def mapped(inputs: Any, tensor_type: type, function: Callable[[Any], Any]) -> Any:
    """`inputs` (a tensor, or a dataclass, dict, list or tuple with some) with `function` of each of its tensors."""
    if isinstance(inputs, tensor_type):
        return function(inputs)
    if is_dataclass(inputs) and not isinstance(inputs, type):
        names = [field.name for field in fields(inputs)]
        return replace(
            inputs, **{name: mapped(getattr(inputs, name), tensor_type, function) for name in names}
        )
    if isinstance(inputs, dict):
        return {key: mapped(item, tensor_type, function) for key, item in inputs.items()}
    if isinstance(inputs, (list, tuple)):
        return type(inputs)(mapped(item, tensor_type, function) for item in inputs)
    return inputs
