"""PyTorch's state as plain data and bytes, and back."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from benchmarks.driver.state_file import Raw, mapped
from utils.errors import FlagPerfError


def with_raw(state: Any) -> Any:
    """`state` with its tensors as Raw."""
    return mapped(state, Tensor, _raw)


def with_tensors(state: Any) -> Any:
    """`state` with each Raw as a tensor of its own in the host's memory."""
    return mapped(state, Raw, _tensor)


def _raw(tensor: Tensor) -> Raw:
    name = str(tensor.dtype).removeprefix("torch.")
    return Raw(name, tuple(tensor.shape), tensor.numel() * tensor.element_size(), lambda: _bytes_of(tensor))


def _bytes_of(tensor: Tensor) -> Any:
    """Of any type: NumPy, which does not know all of them, sees bytes only."""
    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()


def _tensor(raw: Raw) -> Tensor:
    dtype = getattr(torch, raw.dtype, None)
    if not isinstance(dtype, torch.dtype):
        raise FlagPerfError(f"PyTorch {torch.__version__} has no type {raw.dtype!r}", where="checkpoint")
    if not raw.size:
        return torch.empty(raw.shape, dtype=dtype)
    return torch.frombuffer(raw.read(), dtype=torch.uint8).clone().view(dtype).reshape(raw.shape)
