"""Eight real ranks of the digits on this machine's CPUs, one of them slowed by a hook of its vendor, or none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks.driver.ranks import TRAINING, arguments, launch_ranks, values_of

RANKS = 8
# A hook before each forward pass in training, as of a rank whose chip or processor is slower than its peers'.
SLOW = """
import os, time
def convert_model(config, model):
    if os.environ["RANK"] == "{rank}":
        model.register_forward_pre_hook(lambda model, inputs: time.sleep({seconds}) if model.training else None)
    return model
"""


def train(folder: Path, slow_rank: int | None = None, seconds: float = 0.2) -> tuple[dict[str, Any], Path]:
    """FINISHED's values, and the folder with the ranks' logs."""
    folder.mkdir()
    table = np.random.default_rng(0).integers(0, 10, (512, 65)).astype(np.uint8)
    data, extern = folder / "data", folder / "extern"
    for each in (data, extern):
        each.mkdir()
    for name in ("training", "held_out"):
        np.save(data / f"{name}.npy", table)
    if slow_rank is not None:
        (extern / "hooks.py").write_text(SLOW.format(rank=slow_rank, seconds=seconds))
    launch = replace(
        arguments(folder, data, extern),
        case_dir=TRAINING / "benchmarks" / "digits" / "pytorch",
        enable_extern_config=True,
    )
    settings = {
        "max_steps": 30,
        "eval_interval_steps": 30,
        "cpu_threads": 1,
        "log_freq": 1,
        "target_accuracy": 1.0,
    }
    (folder / "config_cpux1x1.py").write_text(
        "".join(f"{name} = {value}\n" for name, value in settings.items())
    )
    logs = folder / "logs"
    code, events = launch_ranks(logs, launch, RANKS)
    assert code == 0, (logs / "rank0.out.log").read_text()[-2000:]
    (finished,) = values_of(events[0], "FINISHED")
    return finished, logs
