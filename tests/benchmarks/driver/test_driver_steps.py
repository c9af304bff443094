"""What an engine does with a step: it takes the rate that it is given, and clips the gradients as configured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.benchmarks.driver.engines import engine_starter

SGD = """
import torch
def create_optimizer(config, model):
    return torch.optim.SGD(model.parameters(), lr=1.0)
"""


def _weights(engine: Any) -> Any:
    """All of them in one vector."""
    parameters = engine.module.parameters()
    return np.concatenate([np.array(parameter.detach().numpy()).reshape(-1) for parameter in parameters])


def _changes(engine: Any, rates: list[float]) -> list[float]:
    """How far one step at each rate moves the weights, as a norm; the batch is the same each time."""
    step = next(iter(engine.training_steps()))
    norms = []
    for rate in rates:
        before = _weights(engine)
        engine.train_step(step, rate)
        norms.append(float(np.linalg.norm(_weights(engine) - before)))
    return norms


@pytest.mark.parametrize("framework", ["pytorch", "paddle"])
def test_a_step_is_as_long_as_its_rate(tmp_path: Path, data_dir: Path, framework: str) -> None:
    """AdamW's first step has the length of its rate in every coordinate, whatever the configured rate is."""
    starter = engine_starter(
        framework, tmp_path, data_dir, learning_rate=7.0, weight_decay_rate=0.0, epsilon=1e-12
    )
    (nothing,) = _changes(starter.start(), [0.0])
    (short,) = _changes(starter.start(), [1e-4])
    (long,) = _changes(starter.start(), [1e-3])
    assert nothing == 0.0
    assert long == pytest.approx(10 * short, rel=0.01)


@pytest.mark.parametrize("limit", [0.05, None])
def test_the_pytorch_engine_clips_the_gradients_to_the_limit(
    tmp_path: Path, data_dir: Path, limit: float | None
) -> None:
    extern = tmp_path / "extern"
    extern.mkdir()
    (extern / "optimizer.py").write_text(SGD)
    starter = engine_starter("pytorch", tmp_path, data_dir, extern, max_grad_norm=limit)
    (norm,) = _changes(starter.start(), [1.0])
    if limit is None:
        assert norm > 0.5
    else:
        assert norm == pytest.approx(limit, rel=1e-3)
