"""A device that is not there, under its vendor's name: PyTorch's PrivateUse1 in Python, which computes on the CPU.

This folder is no part of the controller: a trial (`conformance/trial.py`) lays it among the packages of a Python of its
own, whose ranks import it in place of the vendor's plug-in. Whatever is not a kernel (driver, launcher, process group,
mixed precision, optimizer, checkpoints) runs as it would on the chip.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import distributed
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from .device import StandInDevice
from .tensors import count_operators_of, register

__all__ = ["install"]

_KEPT: list[Any] = []  # registrations live as long as what made them


def install(device_type: str, backend: str) -> None:
    """Make PyTorch know devices called `device_type`, and `backend` for collectives between them.

    What is collective goes through gloo, on the tensors in the host's memory that are behind those of the device.
    """
    module = StandInDevice(device_type, backend, count_operators_of)
    _setup_privateuseone_for_python_backend(device_type, module)
    torch.accelerator.device_count = module.device_count  # the guard that PyTorch makes of Python counts one
    # Memory of the host is as near to this device as memory can be.
    torch.Tensor.pin_memory = _as_it_is  # type: ignore[assignment]
    _KEPT.append(register(device_type))
    distributed.Backend.register_backend(backend, _gloo, devices=[device_type, "cpu"])


def _gloo(store: Any, rank: int, size: int, timeout: Any) -> Any:
    return distributed.ProcessGroupGloo(store, rank, size, timeout=timeout)


def _as_it_is(tensor: torch.Tensor, device: object = None) -> torch.Tensor:
    return tensor
