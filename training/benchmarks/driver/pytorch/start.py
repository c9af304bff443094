"""Start the PyTorch engine of one rank: threads, device, process group, case, hooks."""

from __future__ import annotations

from pathlib import Path

import torch

from benchmarks.driver.arguments import LaunchArguments
from benchmarks.driver.configuration import Configuration
from benchmarks.driver.extern import case_class
from benchmarks.driver.pytorch.case import Case, Context
from benchmarks.driver.pytorch.devices import Device
from benchmarks.driver.pytorch.engine import PytorchEngine
from benchmarks.driver.pytorch.hooks import load_hooks
from benchmarks.driver.pytorch.process_group import ProcessGroup
from benchmarks.driver.ranks import RankEnvironment, threads_per_rank
from benchmarks.driver.vendor_facts import VendorFacts


def load_case(folder: Path) -> type[Case]:
    """The class `Case` of the case folder's `case.py`.

    Raises:
        FlagPerfError: there is none.
    """
    case: type[Case] = case_class(folder)
    return case


def start_engine(
    case: type[Case],
    config: Configuration,
    arguments: LaunchArguments,
    environment: RankEnvironment,
    vendor: VendorFacts,
) -> PytorchEngine:
    """Everything that stands before the first step, but the data's thread."""
    # First: a vendor's module may be what makes its device known to PyTorch.
    hooks = load_hooks(arguments.extern_module_dir if arguments.enable_extern_config else None)
    torch.set_num_threads(threads_per_rank(environment, config.driver.cpu_threads))
    device = Device(vendor.device_type, environment.local_rank)
    group = ProcessGroup(environment, vendor.backend, device.torch, config.driver.dist_timeout_seconds)
    context = Context(
        data_dir=arguments.data_dir,
        driver=config.driver,
        settings=config.case,
        device=device.torch,
    )
    return PytorchEngine(config, case(context), group, device, hooks)
