"""Small real trials on scikit-learn's digits: one rank in this process, or several by the launcher."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import benchmarks
from benchmarks.driver.engine import Engine
from benchmarks.driver.hooks import load_hooks
from benchmarks.driver.pytorch import start
from benchmarks.driver.ranks import RankEnvironment
from benchmarks.search.architecture import Architecture, Images
from benchmarks.search.images import read_facts
from benchmarks.search.layers import Conv, Dense, GlobalPool, Relu
from benchmarks.search.prepare.command import main as prepare
from benchmarks.search.pytorch.data import ImageData
from benchmarks.search.pytorch.trial import TrialPlan, TrialTraining, training_settings
from benchmarks.search.resnet import small_resnet
from utils.config_files import load_constants
from utils.parameters import MeasurementSettings

TRAINING = Path(benchmarks.__file__).parents[1]
CASE = TRAINING / "benchmarks/search/pytorch"
DIGITS = Images(8, 8, 1)
SMALL = small_resnet(DIGITS, 10, width=4)
# Without batch normalisation: its gradients do not depend on how a batch is divided among ranks.
PLAIN = Architecture(
    DIGITS,
    (
        Conv(1, (0,), 8, 3),
        Relu(2, (1,)),
        Conv(3, (2,), 8, 3),
        Relu(4, (3,)),
        GlobalPool(5, (4,)),
        Dense(6, (5,), 10),
    ),
)
SETTINGS: Mapping[str, Any] = {
    **load_constants(CASE / "config/_base.py"), "precision": "fp32", "eval_batch_size": 360, "image_size": 8,
    "flips": False, "batch_sizes": (64, 32), "start": "small_resnet", "start_width": 4,
}  # fmt: skip


def digits(folder: Path) -> Path:
    """The demo's data."""
    assert prepare(["--demo", "--out", str(folder / "digits")]) == 0
    return folder / "digits"


def image_data(folder: Path) -> ImageData:
    """As the demo takes them."""
    return ImageData(folder, read_facts(folder), 8, flips=False, seed=1)


def alone() -> Engine[Any]:
    """A group of one rank, on the processor."""
    device = start.Device("cpu", 0)
    group = start.ProcessGroup(RankEnvironment(), "gloo", device, 60.0)
    return Engine(None, group, device, load_hooks(start.hooks, None))


def plan(architecture: Architecture = SMALL, **changes: Any) -> TrialPlan:
    """A short one."""
    short = TrialPlan(architecture, None, batch_size=64, epochs=2, patience=10, label_smoothing=0.1)
    return replace(short, **changes)


def training_of(folder: Path, engine: Engine[Any], wanted: TrialPlan, **case: Any) -> TrialTraining:
    """A trial with the case's own settings, but for `case`."""
    settings = training_settings({**SETTINGS, **case}, MeasurementSettings(cpu_threads=1))
    return TrialTraining(wanted, image_data(folder), settings, engine)
