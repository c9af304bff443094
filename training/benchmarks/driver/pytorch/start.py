"""What one rank's start needs of PyTorch."""

from __future__ import annotations

import torch

from benchmarks.driver.pytorch import hooks
from benchmarks.driver.pytorch.devices import Device
from benchmarks.driver.pytorch.engine import PytorchEngine as TrainingEngine
from benchmarks.driver.pytorch.process_group import ProcessGroup
from utils.parameters import MeasurementSettings, TrainingSettings

__all__ = ["Device", "ProcessGroup", "TrainingEngine", "hooks", "prepare"]


def prepare(settings: TrainingSettings | MeasurementSettings, device_type: str, threads: int) -> None:
    """Before the device is opened: threads on the host."""
    torch.set_num_threads(threads)
