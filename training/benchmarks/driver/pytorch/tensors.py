"""Move a batch's tensors, whatever holds them."""

from __future__ import annotations

from typing import Any

import torch

from benchmarks.driver.batches import mapped


def moved(inputs: Any, device: torch.device) -> Any:
    """`inputs` (a tensor, or a dataclass, dict, list or tuple with some) with its tensors on `device`.

    Copies from pinned memory do not wait for the device.
    """
    if device.type == "cpu":
        return inputs
    return mapped(inputs, torch.Tensor, lambda tensor: tensor.to(device, non_blocking=True))


def pinned(inputs: Any) -> Any:
    """`inputs` with its tensors in page-locked memory, from which a device can copy by itself."""
    return mapped(inputs, torch.Tensor, lambda tensor: tensor.pin_memory())
