"""A vendor's hooks in a whole round: the stamp, and work that is left out, which is seen by its operations."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.driver.pytorch import facts
from run_benchmarks.results.rules import rules_of
from tests.benchmarks.driver.ranks import TRAINING, arguments, run_here, values_of
from utils.code_files import code_files

MLP = """
import torch
from torch import nn
def convert_model(config, model):
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
def create_optimizer(config, model):
    return torch.optim.SGD(model.parameters(), lr=0.1)
"""
# The parameters are the case's, and half of the work is left out.
SHORT_CUT = """
from torch import nn
class Short(nn.Sequential):
    def forward(self, images):
        for layer in list(self)[:2]:
            images = layer(images)
        pooled = nn.functional.avg_pool2d(images, 2)
        return self[-1](self[-2](self._both(pooled)))
    def _both(self, images):
        import torch
        return torch.cat([images, images], 1)
def convert_model(config, model):
    model.__class__ = Short
    return model
"""


def _digits_round(folder: Path, capsys: Any, code: str) -> tuple[Any, dict[str, str]]:
    """The events of the digits with a vendor's hooks, and the files that a plan would have seen."""
    table = np.random.default_rng(0).integers(0, 10, (128, 65)).astype(np.uint8)
    data = folder / "data"
    data.mkdir()
    for name in ("training", "held_out"):
        np.save(data / f"{name}.npy", table)
    extern = folder / "extern"
    extern.mkdir()
    (extern / "hooks.py").write_text(code)
    launch = replace(
        arguments(folder, data, extern),
        case_dir=TRAINING / "benchmarks" / "digits" / "pytorch",
        enable_extern_config=True,
    )
    (folder / "config_cpux1x1.py").write_text("max_steps = 2\ncpu_threads = 1\nlog_freq = 1\n")
    return run_here(capsys, launch), code_files(extern)


def test_an_mlp_trained_by_sgd_is_open_and_says_why(tmp_path: Path, capsys: Any) -> None:
    events, files = _digits_round(tmp_path, capsys, MLP)
    rules = rules_of(events, extern=files)
    assert rules.stamp == "open"
    reasons = "; ".join(rules.reasons())
    assert "max_steps = 2" in reasons
    assert "convert_model: parameters: 4 tensors of 2410 numbers: without " in reasons
    assert "create_optimizer: optimizer: sgd (torch.optim.sgd.SGD), in place of adamw" in reasons
    assert "hooks in force: convert_model (hooks.py), create_optimizer (hooks.py)" in rules.hooks_line()


def test_work_that_is_left_out_is_seen_by_its_operations(tmp_path: Path, capsys: Any) -> None:
    events, files = _digits_round(tmp_path, capsys, SHORT_CUT)
    (report,) = values_of(events, "HOOKS")
    assert [each["what"] for each in report["differs"]] == [
        "forward FLOPs of a micro-batch in training",
        "forward FLOPs of a micro-batch in evaluation",
    ]
    assert rules_of(events, extern=files).stamp == "open"


# Every second image, and the model's own work where nobody trains.
HALF_THE_IMAGES = """
import random
import torch
from torch import nn
class Half(nn.Sequential):
    def forward(self, images):
        random.random(), torch.rand(1)
        if not {condition}:
            return super().forward(images)
        return super().forward(images[::2]).repeat_interleave(2, 0)
def convert_model(config, model):
    model.__class__ = Half
    return model
"""


@pytest.mark.parametrize(
    ("condition", "mode"),
    [
        ("self.training", "training"),
        ("torch.is_grad_enabled()", "training"),
        ("not self.training", "evaluation"),
    ],
)
def test_work_that_is_left_out_in_one_mode_is_seen(
    tmp_path: Path, capsys: Any, condition: str, mode: str
) -> None:
    events, files = _digits_round(tmp_path, capsys, HALF_THE_IMAGES.replace("{condition}", condition))
    (report,) = values_of(events, "HOOKS")
    assert [each["what"] for each in report["differs"]] == [f"forward FLOPs of a micro-batch in {mode}"]
    assert rules_of(events, extern=files).stamp == "open"


def test_a_count_in_training_leaves_model_and_random_states_alone() -> None:
    """Dropout and a layer that is left out at random change no count; statistics stay those of the real model."""

    class Sometimes(torch.nn.Linear):
        def forward(self, values: torch.Tensor) -> torch.Tensor:
            return super().forward(values) if random.random() < 0.5 else values

    layers = [torch.nn.Linear(8, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.5)]
    model = torch.nn.Sequential(*layers, *(Sometimes(8, 8) for _ in range(16)))
    held = {name: value.clone() for name, value in model.state_dict().items()}
    shadows = [facts.shadow(model), facts.shadow(model)]
    before = random.getstate(), torch.get_rng_state()
    counts = [
        facts.forward_flops(each, lambda net, values: net(values).sum(), torch.ones(4, 8), training=True)
        for each in shadows
    ]
    assert counts[0] == counts[1] > 0
    assert random.getstate() == before[0] and torch.equal(torch.get_rng_state(), before[1])
    assert model.training and all(torch.equal(held[name], now) for name, now in model.state_dict().items())
