"""What one rank's start needs of Paddle."""

from __future__ import annotations

import os

from paddle.base import core

from benchmarks.driver.paddle import hooks
from benchmarks.driver.paddle.devices import Device
from benchmarks.driver.paddle.engine import PaddleEngine as TrainingEngine
from benchmarks.driver.paddle.process_group import ProcessGroup
from utils.parameters import MeasurementSettings, TrainingSettings

__all__ = ["Device", "ProcessGroup", "TrainingEngine", "hooks", "prepare"]


def prepare(settings: TrainingSettings | MeasurementSettings, device_type: str, threads: int) -> None:
    """Before the device is opened: threads on the host, and fp32 that is fp32."""
    core.set_num_threads(threads)
    if isinstance(settings, TrainingSettings) and settings.precision == "fp32":
        # NVIDIA's libraries would round the inputs of products to TF32: that is another precision.
        os.environ["NVIDIA_TF32_OVERRIDE"] = "0"
