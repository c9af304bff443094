"""The optimizers against plain float64 forms of their papers, over 50 steps."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from benchmarks.driver.pytorch.lamb import Lamb
from benchmarks.driver.pytorch.optimizers import can_fuse, make_optimizer, parameter_groups
from tests.benchmarks.driver import plain_optimizers as plain
from utils.parameters import TrainingSettings


def test_the_problem_has_steps_that_are_clipped_and_steps_that_are_not() -> None:
    norms = [np.sqrt(sum((g**2).sum() for g in plain.gradients(plain.start(), step))) for step in range(50)]
    assert min(norms) < plain.CLIP < max(norms)
    assert plain.RATE(plain.STEPS - 1) == 0.0 < plain.RATE(30)


@pytest.mark.parametrize(("name", "update"), [("lamb", plain.lamb_update), ("adamw", plain.adamw_update)])
def test_50_steps_equal_the_plain_form(name: str, update: plain.Update) -> None:
    model = nn.ParameterList([torch.from_numpy(value).float() for value in plain.start()])
    settings = TrainingSettings(
        optimizer=name,
        weight_decay_rate=plain.DECAY,
        beta_1=plain.BETA_1,
        beta_2=plain.BETA_2,
        epsilon=plain.EPSILON,
        max_steps=1,
    )
    optimizer = make_optimizer(settings, model)
    for step in range(plain.STEPS):
        for group in optimizer.param_groups:
            group["lr"] = plain.RATE(step)
        present = [parameter.detach().double().numpy() for parameter in model]
        for parameter, gradient in zip(model, plain.gradients(present, step), strict=True):
            parameter.grad = torch.from_numpy(gradient).float()
        torch.nn.utils.clip_grad_norm_(model.parameters(), plain.CLIP)
        optimizer.step()

    for parameter, before, expected in zip(
        model, plain.start(), plain.trained(plain.start(), update), strict=True
    ):
        assert np.abs(expected - before).max() > 1e-3
        np.testing.assert_allclose(parameter.detach().numpy(), expected, rtol=1e-4, atol=1e-6)


def test_sgd_has_its_momentum_and_decays_matrices_alone() -> None:
    model = nn.ParameterList([torch.full((2, 2), 1.0), torch.full((2,), 1.0)])
    settings = TrainingSettings(
        optimizer="sgd", learning_rate=0.1, beta_1=0.5, weight_decay_rate=0.2, max_steps=1
    )
    optimizer = make_optimizer(settings, model)
    for _ in range(2):
        for parameter in model:
            parameter.grad = torch.ones_like(parameter)
        optimizer.step()
    # velocities 1.2 and 0.5 * 1.2 + 1 + 0.2 * 0.88; 1 and 1.5
    assert model[0].flatten().tolist() == pytest.approx([1 - 0.1 * (1.2 + 1.776)] * 4)
    assert model[1].tolist() == pytest.approx([1 - 0.1 * 2.5] * 2)


def test_adamw_is_fused_where_that_works(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """FAKE of devices without the kernel, or with a wrong one: there is none here."""

    def lacks_it(*_: object, **__: object) -> None:
        raise NotImplementedError("Could not run 'aten::_fused_adamw_'\nCPU: registered at")

    here = torch.device("cpu")
    assert can_fuse(here) and capsys.readouterr().out == ""
    for kernel, why in (
        (lacks_it, "NotImplementedError: Could not run 'aten::_fused_adamw_'"),
        (lambda *_, **__: None, "a step from 0 to -1 led to 0"),
    ):
        monkeypatch.setattr(torch, "_fused_adamw_", kernel)
        optimizer = make_optimizer(TrainingSettings(optimizer="adamw", max_steps=1), nn.Linear(2, 2))
        assert optimizer.defaults["fused"] is False
        assert capsys.readouterr().out == f"AdamW is not fused on cpu: {why}\n"


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
