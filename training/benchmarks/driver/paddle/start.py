"""What one rank's start needs of Paddle."""

from __future__ import annotations

import os

import paddle
from paddle.base import core

from benchmarks.driver.paddle import hooks
from benchmarks.driver.paddle.devices import Device
from benchmarks.driver.paddle.engine import PaddleEngine as TrainingEngine
from benchmarks.driver.paddle.process_group import ProcessGroup
from utils.parameters import MeasurementSettings, TrainingSettings

__all__ = ["Device", "ProcessGroup", "TrainingEngine", "hooks", "prepare", "versions"]


def prepare(settings: TrainingSettings | MeasurementSettings, device_type: str, threads: int) -> None:
    """Before the device is opened: threads on the host, and fp32 that is fp32."""
    core.set_num_threads(threads)
    if isinstance(settings, TrainingSettings) and settings.precision == "fp32":
        # NVIDIA's libraries would round the inputs of products to TF32: that is another precision.
        os.environ["NVIDIA_TF32_OVERRIDE"] = "0"


def versions() -> dict[str, str | None]:
    """Paddle and the libraries that it brings for chips and collectives; None for those that it was built without."""
    libraries = {name: str(getattr(paddle.version, name)()) for name in ("cuda", "cudnn", "nccl")}
    built_without = ("False", "0")
    named = {name: None if version in built_without else version for name, version in libraries.items()}
    return {"paddle": paddle.version.full_version, **named}
