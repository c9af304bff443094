"""The optimizers against plain float64 forms of their papers, over 50 steps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from benchmarks.driver.pytorch.lamb import Lamb
from benchmarks.driver.pytorch.optimizers import make_optimizer, parameter_groups
from benchmarks.driver.schedules import make_schedule
from benchmarks.driver.settings import DriverSettings

Array = NDArray[np.float64]
STEPS, BETA_1, BETA_2, EPSILON, DECAY, CLIP = 50, 0.9, 0.999, 1e-6, 0.01, 1.0
RATE = make_schedule(
    "linear", peak=0.02, warmup_steps=5, decay_steps=40, end_factor=0.0
)  # ends before the run


def _clipped(gradients: list[Array]) -> list[Array]:
    norm = np.sqrt(sum((gradient**2).sum() for gradient in gradients))
    return [gradient * min(1.0, CLIP / (norm + 1e-6)) for gradient in gradients]


def _lamb_update(weight: Array, adam: Array, decay: float, rate: float) -> Array:
    """Algorithm 2 of arXiv:1904.00962; the ratio is for tensors with weight decay only."""
    update = adam + decay * weight
    weight_norm, update_norm = np.linalg.norm(weight), np.linalg.norm(update)
    ratio = weight_norm / update_norm if decay and weight_norm > 0 and update_norm > 0 else 1.0
    return weight - rate * ratio * update


def _adamw_update(weight: Array, adam: Array, decay: float, rate: float) -> Array:
    """Algorithm 2 of arXiv:1711.05101."""
    return weight - rate * decay * weight - rate * adam


def _plain(
    weights: list[Array],
    gradients: Callable[[list[Array], int], list[Array]],
    update: Callable[[Array, Array, float, float], Array],
) -> list[Array]:
    """50 steps in float64, a tensor at a time."""
    first, second = [np.zeros_like(w) for w in weights], [np.zeros_like(w) for w in weights]
    for step in range(STEPS):
        for index, gradient in enumerate(_clipped(gradients(weights, step))):
            first[index] = BETA_1 * first[index] + (1 - BETA_1) * gradient
            second[index] = BETA_2 * second[index] + (1 - BETA_2) * gradient**2
            mean = first[index] / (1 - BETA_1 ** (step + 1))
            square = second[index] / (1 - BETA_2 ** (step + 1))
            adam = mean / (np.sqrt(square) + EPSILON)
            decay = DECAY if weights[index].ndim > 1 else 0.0
            weights[index] = update(weights[index], adam, decay, RATE(step))
    return weights


class _Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3)
        self.zero = nn.Parameter(torch.zeros(2, 3))  # norm 0: its ratio must be 1


def _target_gradients(targets: list[Array]) -> Callable[[list[Array], int], list[Array]]:
    """Of 0.5 |w - target|^2, with a push that changes from step to step."""
    return lambda weights, step: [w - t * np.cos(0.3 * step) for w, t in zip(weights, targets, strict=True)]


@pytest.mark.parametrize(("name", "update"), [("lamb", _lamb_update), ("adamw", _adamw_update)])
def test_50_steps_equal_the_plain_form(name: str, update: Callable[..., Array]) -> None:
    torch.manual_seed(0)
    net = _Net()
    settings = DriverSettings(
        optimizer=name, weight_decay_rate=DECAY, beta_1=BETA_1, beta_2=BETA_2, epsilon=EPSILON, max_steps=1
    )
    optimizer = make_optimizer(settings, net)
    parameters = list(net.parameters())
    start = [parameter.detach().double().numpy().copy() for parameter in parameters]
    gradients = _target_gradients([np.random.default_rng(1).normal(size=w.shape) for w in start])
    expected = _plain([w.copy() for w in start], gradients, update)

    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = RATE(step)
        present = [parameter.detach().double().numpy() for parameter in parameters]
        for parameter, gradient in zip(parameters, gradients(present, step), strict=True):
            parameter.grad = torch.from_numpy(gradient).float()
        torch.nn.utils.clip_grad_norm_(parameters, CLIP)
        optimizer.step()

    for parameter, before, plain in zip(parameters, start, expected, strict=True):
        after = parameter.detach().double().numpy()
        assert np.abs(plain - before).max() > 1e-3
        np.testing.assert_allclose(after, plain, rtol=1e-4, atol=1e-6)


def test_weight_decay_is_for_matrices_only() -> None:
    with_decay, without = parameter_groups(nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3)), 0.01)
    assert [parameter.dim() for parameter in with_decay["params"]] == [2]
    assert [parameter.dim() for parameter in without["params"]] == [1, 1, 1]
    assert (with_decay["weight_decay"], without["weight_decay"]) == (0.01, 0.0)


def test_lamb_skips_what_has_no_gradient_and_goes_on_from_its_state() -> None:
    first, second = nn.Parameter(torch.ones(2, 2)), nn.Parameter(torch.ones(2, 2))
    optimizer = Lamb([first, second], lr=0.1)
    first.grad = torch.ones(2, 2)
    optimizer.step()
    assert torch.equal(second, torch.ones(2, 2))

    restored_weight = nn.Parameter(first.detach().clone())
    restored = Lamb([restored_weight, nn.Parameter(torch.ones(2, 2))], lr=0.1)
    restored.load_state_dict(optimizer.state_dict())
    restored_weight.grad = first.grad.clone()
    optimizer.step()
    restored.step()
    assert torch.equal(first, restored_weight)
