"""What one rank's start needs of Paddle."""

from __future__ import annotations

import os

from paddle.base import core

from benchmarks.driver.paddle import hooks
from benchmarks.driver.paddle.devices import Device
from benchmarks.driver.paddle.engine import PaddleEngine as TrainingEngine
from benchmarks.driver.paddle.process_group import ProcessGroup
from utils.errors import FlagPerfError
from utils.parameters import MeasurementSettings, TrainingSettings

__all__ = ["Device", "ProcessGroup", "TrainingEngine", "hooks", "prepare"]


def prepare(settings: TrainingSettings | MeasurementSettings, device_type: str, threads: int) -> None:
    """Before the device is opened: threads on the host, and the precision that the configuration names.

    Raises:
        FlagPerfError: it names what Paddle has not: Paddle would only warn, and compute in fp32.
    """
    core.set_num_threads(threads)
    if isinstance(settings, MeasurementSettings):
        return
    if settings.precision == "fp32":
        # NVIDIA's libraries would round the inputs of products to TF32: that is another precision.
        os.environ["NVIDIA_TF32_OVERRIDE"] = "0"
    elif device_type == "cpu":
        raise FlagPerfError(
            f"precision = {settings.precision!r}: Paddle computes in fp32 only on a CPU",
            where="configuration",
            remedy='set precision = "fp32"',
        )
