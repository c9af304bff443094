"""How much device memory a step of training needs, counted without the device.

The case's own model is run forward and backward on *fake* tensors, which have shapes and types but no values, at the
real size; every storage that an operation makes is counted from then until nothing refers to it. What differs on a
GPU is put in place: attention saves what flash kernels save, dropout a byte a value.

    needed = GAPS x (moments + the most of: alive in training, in the optimizer's step, in evaluation) + RESERVE

GAPS stands for what the allocator cannot use, 5 %, a usual share; RESERVE for what is not PyTorch's. Both are
estimates, as is that a kernel needs no workspace worth the name: the result is right to some 5 %. The count itself is
exact: the same step with real tensors gives the same number to a thousandth, and what the backward pass keeps is
what PyTorch's own hooks see and what a layer's code says (`test_device_memory.py`). Against a GPU's counter it has not
been held yet.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import astuple, dataclass, field
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from benchmarks.common.pytorch import attention as attention_module

GIB = 2**30
RESERVE = 1.5 * GIB  # the driver's context, cuBLAS's workspace, NCCL's buffers
GAPS = 1.05
MOMENTS = 8  # bytes a weight of the optimizer's two
LAMB_TEMPORARIES = 8  # bytes a weight while LAMB makes its step: divisor and update


@dataclass
class LiveStorages(TorchDispatchMode):
    """Bytes of the storages that operations made and that are still referred to; `peak` is the most at once."""

    live: int = 0
    peak: int = 0
    _counted: dict[int, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor):
                self.count(tensor)
        return result

    def count(self, tensor: Tensor) -> None:
        """Count the tensor's storage until it is gone."""
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self._counted:
            return
        size = storage.nbytes()
        self._counted[key] = weakref.ref(storage, lambda _: self._gone(key, size))
        self.live += size
        self.peak = max(self.peak, self.live)

    def _gone(self, key: int, size: int) -> None:
        del self._counted[key]
        self.live -= size


class _Flash(torch.autograd.Function):
    """A stand-in for a flash kernel: its result's shape, and what it keeps for the backward pass."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, sums: Tensor) -> Tensor:
        result = torch.empty_like(q, memory_format=torch.contiguous_format)
        ctx.save_for_backward(q, k, v, result, sums)
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        q, k, v, _, _ = ctx.saved_tensors
        return torch.empty_like(q), torch.empty_like(k), torch.empty_like(v), None


def _flash(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """With a float32 log sum for each query and head."""
    result: Tensor = _Flash.apply(q, k, v, q.new_empty(q.shape[:-1], dtype=torch.float32))  # type: ignore[no-untyped-call]
    return result


def _on_rows(self: Any, query: Tensor, key: Tensor, value: Tensor, **_: Any) -> Tensor:
    """`Ragged.attend`, whose kernels take rows that lie together."""
    return _flash(query.contiguous(), key.contiguous(), value.contiguous())


def _on_a_rectangle(q: Tensor, k: Tensor, v: Tensor, **_: Any) -> Tensor:
    return _flash(q, k, v)


def _dropout(values: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """As on a GPU: a byte a value is kept."""
    return torch.native_dropout(values, p, True)[0] if training and p else values


@contextmanager
def as_on_a_gpu(*layouts: Any) -> Iterator[None]:
    """Attention and dropout keep what they keep there; `layouts` are the modules that call `attention`."""
    with (
        patch.object(attention_module.Ragged, "attend", _on_rows),
        patch.object(torch.nn.functional, "dropout", _dropout),
    ):
        for layout in layouts:
            layout.attention = _on_a_rectangle
        try:
            yield
        finally:
            for layout in layouts:
                layout.attention = attention_module.attention


@dataclass(frozen=True)
class RankMemory:
    """Bytes of a rank: its `weights` (fp32), and the most that is alive while it trains and while it evaluates.

    Weights and gradients are in them, the optimizer's moments are not.
    """

    weights: int
    training: int
    evaluation: int

    def extended(self, more: RankMemory, times: float) -> RankMemory:
        """With what `more` has beyond this one, so many times."""
        return RankMemory(
            *(
                round(own + times * (other - own))
                for own, other in zip(astuple(self), astuple(more), strict=True)
            )
        )

    def needed(self, optimizer: str) -> float:
        """Of the device, with the moments and with what the count does not see."""
        numbers = self.weights // 4
        at_step = 2 * self.weights + (LAMB_TEMPORARIES * numbers if optimizer == "lamb" else 0)
        return GAPS * (MOMENTS * numbers + max(self.training, at_step, self.evaluation)) + RESERVE


def training_peak(model: nn.Module, loss: Callable[[], Tensor], precision: str) -> int:
    """The most that is alive while `loss` and its gradients are computed."""
    with _counted(model) as storages:
        with _autocast(precision):
            total = loss().sum()
        total.backward()
    return storages.peak


def evaluation_peak(model: nn.Module, evaluate: Callable[[], object], precision: str) -> int:
    """The same of an evaluation, which makes no gradients."""
    with _counted(model) as storages, torch.no_grad(), _autocast(precision):
        evaluate()
    return storages.peak


@contextmanager
def _counted(model: nn.Module) -> Iterator[LiveStorages]:
    with LiveStorages() as storages:
        for parameter in model.parameters():
            storages.count(parameter)
        yield storages


def _autocast(precision: str) -> Any:
    """fp16 takes as many bytes as bf16, and the CPU has bf16."""
    return nullcontext() if precision == "fp32" else torch.autocast("cpu", torch.bfloat16)
