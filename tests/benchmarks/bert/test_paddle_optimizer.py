"""Paddle's AdamW with clipping and schedule against a plain float64 form, and against PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
import pytest
import torch

from benchmarks.driver.paddle.optimizers import make_optimizer
from benchmarks.driver.pytorch import optimizers as torch_optimizers
from benchmarks.driver.schedules import make_schedule
from tests.benchmarks.driver import plain_optimizers as plain
from utils.parameters import TrainingSettings

STEPS = 50
SHAPES: dict[str, tuple[int, ...]] = {"matrix": (4, 3), "vector": (3,), "zeros": (2, 3)}
RATE = make_schedule(
    "linear", peak=0.02, warmup_steps=5, decay_steps=40, end_factor=0.0
)  # ends before the run
SETTINGS = TrainingSettings(
    optimizer="adamw", weight_decay_rate=0.1, beta_1=0.9, beta_2=0.999, epsilon=1e-6, max_steps=1
)


def _start() -> dict[str, Any]:
    generator = np.random.default_rng(0)
    values = {name: generator.normal(size=shape).astype(np.float32) for name, shape in SHAPES.items()}
    return {**values, "zeros": np.zeros(SHAPES["zeros"], np.float32)}


def _gradients(step: int) -> dict[str, Any]:
    """Some steps are clipped, some are not."""
    generator = np.random.default_rng(step)
    return {
        n: (generator.normal(size=s) * (3.0 if step % 3 else 0.01)).astype(np.float32)
        for n, s in SHAPES.items()
    }


def _with_torch(settings: TrainingSettings) -> dict[str, Any]:
    model = torch.nn.ParameterDict({name: torch.from_numpy(array.copy()) for name, array in _start().items()})
    optimizer = torch_optimizers.make_optimizer(settings, model)
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = RATE(step)
        for name, gradient in _gradients(step).items():
            model[name].grad = torch.from_numpy(gradient)
        if settings.max_grad_norm is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), settings.max_grad_norm)
        optimizer.step()
    return {name: parameter.detach().numpy() for name, parameter in model.items()}


class _Net(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        for name, array in _start().items():
            parameter = self.create_parameter(list(array.shape))
            parameter.set_value(paddle.to_tensor(array))
            self.add_parameter(name, parameter)


def _with_paddle(settings: TrainingSettings) -> dict[str, Any]:
    model = _Net()
    optimizer = make_optimizer(settings, model)
    for step in range(STEPS):
        optimizer.set_lr(RATE(step))
        for name, gradient in _gradients(step).items():
            getattr(model, name).grad = paddle.to_tensor(gradient)
        optimizer.step()
        optimizer.clear_grad(set_to_zero=False)
    return {name: parameter.numpy() for name, parameter in model.named_parameters()}


@pytest.mark.parametrize("max_grad_norm", [1.0, None])
def test_50_steps_equal_pytorchs(max_grad_norm: float | None) -> None:
    settings = TrainingSettings(**{**vars(SETTINGS), "max_grad_norm": max_grad_norm})
    expected, found, start = _with_torch(settings), _with_paddle(settings), _start()
    for name in SHAPES:
        assert np.abs(expected[name] - start[name]).max() > 1e-2
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-4, atol=1e-6, err_msg=name)


def test_50_steps_equal_the_plain_form() -> None:
    model = paddle.nn.ParameterList()
    for value in plain.start():
        parameter = model.create_parameter(list(value.shape))
        parameter.set_value(paddle.to_tensor(value.astype(np.float32)))
        model.append(parameter)
    settings = {"weight_decay_rate": plain.DECAY, "epsilon": plain.EPSILON, "max_grad_norm": plain.CLIP}
    optimizer = make_optimizer(TrainingSettings(**{**vars(SETTINGS), **settings}), model)
    for step in range(plain.STEPS):
        optimizer.set_lr(plain.RATE(step))
        present = [parameter.numpy().astype(np.float64) for parameter in model]
        for parameter, gradient in zip(model, plain.gradients(present, step), strict=True):
            parameter.grad = paddle.to_tensor(gradient.astype(np.float32))
        optimizer.step()
        optimizer.clear_grad(set_to_zero=False)
    for parameter, expected in zip(model, plain.trained(plain.start(), plain.adamw_update), strict=True):
        np.testing.assert_allclose(parameter.numpy(), expected, rtol=1e-4, atol=1e-6)


def test_weight_decay_is_for_matrices_only() -> None:
    model = _Net()
    optimizer = make_optimizer(SETTINGS, model)
    for name, shape in SHAPES.items():
        getattr(model, name).grad = paddle.zeros(shape)
    optimizer.set_lr(0.5)
    optimizer.step()
    start = _start()
    np.testing.assert_allclose(model.matrix.numpy(), start["matrix"] * (1 - 0.5 * 0.1), rtol=1e-6)
    np.testing.assert_array_equal(model.vector.numpy(), start["vector"])
