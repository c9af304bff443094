"""Start the Paddle engine of one rank: threads, device, process group, case, hooks."""

from __future__ import annotations

import os
from typing import Any

from paddle.base import core

from benchmarks.driver.arguments import LaunchArguments
from benchmarks.driver.configuration import Configuration
from benchmarks.driver.paddle.case import Context, MeasurementContext
from benchmarks.driver.paddle.devices import Device
from benchmarks.driver.paddle.engine import PaddleEngine
from benchmarks.driver.paddle.hooks import load_hooks
from benchmarks.driver.paddle.process_group import ProcessGroup
from benchmarks.driver.rank_engine import RankEngine
from benchmarks.driver.ranks import RankEnvironment, threads_per_rank
from benchmarks.driver.vendor_facts import VendorFacts
from utils.errors import FlagPerfError
from utils.parameters import MeasurementSettings, TrainingSettings


def start_engine(
    case: Any,
    config: Configuration,
    arguments: LaunchArguments,
    environment: RankEnvironment,
    vendor: VendorFacts,
) -> RankEngine[Any, ProcessGroup, Device]:
    """Everything that stands before the first step, but the data's thread; `case` is the class of the case."""
    # First: a vendor's module may be what makes its device known to Paddle.
    hooks = load_hooks(arguments.extern_module_dir if arguments.enable_extern_config else None)
    core.set_num_threads(threads_per_rank(environment, config.settings.cpu_threads))
    trains = isinstance(config.settings, TrainingSettings)
    if trains and config.driver.precision == "fp32":
        # NVIDIA's libraries would round the inputs of products to TF32: that is another precision.
        os.environ["NVIDIA_TF32_OVERRIDE"] = "0"
    device = Device(vendor.device_type, environment.local_rank)
    if trains:
        _refuse_what_is_not_there(config.driver, device)
    group = ProcessGroup(environment, vendor.backend, device, config.settings.dist_timeout_seconds)
    if isinstance(config.settings, MeasurementSettings):
        measured = MeasurementContext(arguments.data_dir, config.settings, config.case, device.name)
        return RankEngine(case(measured), group, device)
    context = Context(arguments.data_dir, config.settings, config.case, device.name)
    return PaddleEngine(config, case(context), group, device, hooks)


def _refuse_what_is_not_there(settings: TrainingSettings, device: Device) -> None:
    """Paddle only warns and computes in fp32 where the configuration says otherwise."""
    if device.is_cpu and settings.precision != "fp32":
        raise FlagPerfError(
            f"precision = {settings.precision!r}: Paddle computes in fp32 only on a CPU",
            where="configuration",
            remedy='set precision = "fp32"',
        )
    if settings.torch_compile:
        raise FlagPerfError(
            "torch_compile = True: that is PyTorch's compiler", where="configuration", remedy="leave it out"
        )
