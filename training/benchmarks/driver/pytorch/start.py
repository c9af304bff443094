"""Start the PyTorch engine of one rank: threads, device, process group, case, hooks."""

from __future__ import annotations

from typing import Any

import torch

from benchmarks.driver.arguments import LaunchArguments
from benchmarks.driver.configuration import Configuration
from benchmarks.driver.pytorch.case import Context, MeasurementContext
from benchmarks.driver.pytorch.devices import Device
from benchmarks.driver.pytorch.engine import PytorchEngine
from benchmarks.driver.pytorch.hooks import load_hooks
from benchmarks.driver.pytorch.process_group import ProcessGroup
from benchmarks.driver.rank_engine import RankEngine
from benchmarks.driver.ranks import RankEnvironment, threads_per_rank
from benchmarks.driver.vendor_facts import VendorFacts
from utils.parameters import MeasurementSettings


def start_engine(
    case: Any,
    config: Configuration,
    arguments: LaunchArguments,
    environment: RankEnvironment,
    vendor: VendorFacts,
) -> RankEngine[Any, ProcessGroup, Device]:
    """Everything that stands before the first step, but the data's thread; `case` is the class of the case."""
    # First: a vendor's module may be what makes its device known to PyTorch.
    hooks = load_hooks(arguments.extern_module_dir if arguments.enable_extern_config else None)
    torch.set_num_threads(threads_per_rank(environment, config.settings.cpu_threads))
    device = Device(vendor.device_type, environment.local_rank)
    group = ProcessGroup(environment, vendor.backend, device.torch, config.settings.dist_timeout_seconds)
    if isinstance(config.settings, MeasurementSettings):
        measured = MeasurementContext(arguments.data_dir, config.settings, config.case, device.torch)
        return RankEngine(case(measured), group, device)
    context = Context(arguments.data_dir, config.settings, config.case, device.torch)
    return PytorchEngine(config, case(context), group, device, hooks)
