"""One training step on a device against the same step on the CPU in fp32; benches/gpu.py calls this, a process a case.

    python benches/gpu_numerics.py --case bert --place FOLDER --vendor nvidia --chip H100 [--profile]

What is compared, and how: benchmarks/driver/pytorch/one_step.py. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training"))

import torch
from gpu_cases import TRAINING, TrainingCase
from gpu_rounds import FRAMEWORK, Place

from benchmarks.driver.arguments import LaunchArguments
from benchmarks.driver.pytorch.engine import PytorchEngine
from benchmarks.driver.pytorch.one_step import Trainer, compared
from benchmarks.driver.vendor_facts import VendorFacts, read_vendor_facts

PROFILED_STEPS = 3


def trainer_of(case: TrainingCase, place: Place, changes: Mapping[str, Any]) -> Trainer:
    """The case with the configuration and the data that its round had, and `changes`."""
    file = place.config_file(case.name)
    return Trainer(
        LaunchArguments(
            case_dir=place.training / "benchmarks" / case.name / FRAMEWORK,
            data_dir=place.data(case.name),
            vendor=place.vendor,
            extern_config_dir=file.parent,
            extern_config_file=file.name,
            enable_extern_config=True,
            overrides=dict(changes),
        )
    )


def profile(trainer: Trainer, facts: VendorFacts) -> str:
    """Where the device's time goes in steps as the configuration has them: a table."""
    engine: PytorchEngine = trainer.engine(PytorchEngine, facts, {})
    steps = engine.training_steps()
    for _ in range(PROFILED_STEPS):
        engine.train_step(next(steps), 0.0)
    engine.loss()
    on_device = facts.device_type == "cuda"
    kinds = torch.profiler.ProfilerActivity
    ready = [next(steps) for _ in range(PROFILED_STEPS)]
    with torch.profiler.profile(activities=[kinds.CPU, *([kinds.CUDA] if on_device else [])]) as profiler:
        for step in ready:
            engine.train_step(step, 0.0)
        engine.loss()
    order = f"self_{'cuda' if on_device else 'cpu'}_time_total"
    table: str = profiler.key_averages().table(sort_by=order, row_limit=40, max_name_column_width=90)
    return table


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--case", choices=TRAINING, required=True)
    parser.add_argument("--place", type=Path, required=True, help="the folder that gpu.py works in")
    parser.add_argument("--vendor", required=True)
    parser.add_argument("--chip", required=True)
    parser.add_argument("--profile", action="store_true", help="show where the time of a step goes instead")
    arguments = parser.parse_args()
    case = TRAINING[arguments.case]
    place = Place(arguments.place, vendor=arguments.vendor, chip=arguments.chip)
    facts = read_vendor_facts(arguments.vendor, FRAMEWORK, place.training)
    if arguments.profile:
        print(profile(trainer_of(case, place, {}), facts))
        return 0
    changes = {"train_batch_size": case.compared, **dict.fromkeys(case.dropouts, 0.0)}
    print(json.dumps(compared(trainer_of(case, place, changes), facts)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
