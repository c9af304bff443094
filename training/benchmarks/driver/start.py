"""Start the engine of one rank: hooks, threads, device, process group, case."""

from __future__ import annotations

from typing import Any

from benchmarks.driver.arguments import LaunchArguments
from benchmarks.driver.case import CaseValues, Context
from benchmarks.driver.configuration import Configuration, refuse_unequal
from benchmarks.driver.engine import Engine
from benchmarks.driver.hooks import load_hooks
from benchmarks.driver.precision import settled
from benchmarks.driver.ranks import RankEnvironment, threads_per_rank
from benchmarks.driver.vendor_facts import VendorFacts
from utils.parameters import MeasurementSettings
from utils.plain_data import exact


def start_engine(
    framework: Any,
    case: Any,
    config: Configuration,
    arguments: LaunchArguments,
    environment: RankEnvironment,
    vendor: VendorFacts,
) -> Engine[Any]:
    """Everything that stands before the first step, but the data's thread.

    Args:
        framework: the module `benchmarks.driver.<framework>.start`.
        case: the class of the case.
        vendor: its plug-in is imported.

    Raises:
        FlagPerfError: the ranks do not have the same parameters.
    """
    settings = config.settings
    hooks = load_hooks(
        framework.hooks, arguments.extern_module_dir if arguments.enable_extern_config else None
    )
    framework.prepare(settings, vendor.device_type, threads_per_rank(environment, settings.cpu_threads))
    device = framework.Device(vendor.device_type, environment.local_rank)
    group = framework.ProcessGroup(environment, vendor.backend, device, settings.dist_timeout_seconds)
    refuse_unequal(group.gather(exact(config.as_dict())), arguments)
    config = settled(config, arguments.framework, group)
    values = CaseValues(config.case, config.settings)
    task = case(Context(arguments.data_dir, config.settings, values, device.place, vendor.ragged_attention))
    if isinstance(settings, MeasurementSettings):
        return Engine(task, group, device, hooks)
    engine: Engine[Any] = framework.TrainingEngine(config, task, group, device, hooks)
    return engine
