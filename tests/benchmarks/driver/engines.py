"""Real engines of one rank on the tiny BERT case, in this process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.driver.configuration import Configuration, read_configuration
from benchmarks.driver.extern import case_class
from benchmarks.driver.ranks import RankEnvironment
from benchmarks.driver.session import load_framework
from benchmarks.driver.start import start_engine
from benchmarks.driver.vendor_facts import PLAIN_CPU
from tests.benchmarks.driver.ranks import TRAINING, arguments

EVERY_FOUR_STEPS = {"eval_interval_steps": 4, "eval_interval_samples": None, "eval_iter_start_samples": 0}


@dataclass(frozen=True)
class EngineStarter:
    """Starts an engine with the same initial weights each time it is asked to."""

    metric: str
    config: Configuration
    start: Callable[[], Any]


def engine_starter(
    framework: str, folder: Path, data_dir: Path, extern: Path | None = None, **settings: Any
) -> EngineStarter:
    """Of the engine of `framework`; `settings` go into the vendor's file, which lies in `folder`."""
    launch = arguments(folder, data_dir, extern, **{"optimizer": "adamw", **EVERY_FOUR_STEPS, **settings})
    launch = replace(launch, case_dir=TRAINING / "benchmarks" / "bert" / framework)
    module = load_framework(framework)
    case = case_class(launch.case_dir)
    config = read_configuration(launch, case.metric)
    parts = (module, case, config, launch, RankEnvironment(), PLAIN_CPU)
    return EngineStarter(case.metric, config, lambda: start_engine(*parts))
