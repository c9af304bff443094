"""LAMB: layer-wise adaptive large batch optimization (You et al. 2020, arXiv:1904.00962)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

_Tensors = list[Tensor] | tuple[Tensor, ...]


class Lamb(Optimizer):
    """Algorithm 2 of the paper with bias correction.

    For each tensor w with gradient g: m and v are Adam's moments, u = m^ / (sqrt(v^) + eps) + decay * w,
    and w -= rate * (|w| / |u|) * u, the ratio being 1 where either norm is 0. Tensors of groups without
    weight decay (biases, normalisation) are not scaled by the ratio, as in NVIDIA's BERT and MLPerf's.

    Everything is done on lists of tensors (`torch._foreach_*`): on a GPU a few kernels for all of them,
    and no norm is ever read by Python.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.01,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """One step for every tensor that has a gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            self._step_group(group)
        return loss

    def _step_group(self, group: dict[str, Any]) -> None:
        weights = [weight for weight in group["params"] if weight.grad is not None]
        if not weights:
            return
        group["step"] = step = group.get("step", 0) + 1
        first, second = self._moments(weights)
        gradients = [weight.grad for weight in weights]
        beta_1, beta_2 = group["betas"]
        torch._foreach_lerp_(first, gradients, 1 - beta_1)
        torch._foreach_mul_(second, beta_2)
        torch._foreach_addcmul_(second, gradients, gradients, 1 - beta_2)

        divisor = torch._foreach_sqrt(second)
        torch._foreach_div_(divisor, (1 - beta_2**step) ** 0.5)
        torch._foreach_add_(divisor, group["eps"])
        update = torch._foreach_div(first, divisor)
        torch._foreach_div_(update, 1 - beta_1**step)
        if group["weight_decay"]:
            torch._foreach_add_(update, weights, alpha=group["weight_decay"])
            torch._foreach_mul_(update, _trust_ratios(weights, update))
        torch._foreach_add_(weights, update, alpha=-group["lr"])

    def _moments(self, weights: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        """The first and second moments, made at a tensor's first step."""
        for weight in weights:
            if not self.state[weight]:
                self.state[weight] = {
                    "exp_avg": torch.zeros_like(weight),
                    "exp_avg_sq": torch.zeros_like(weight),
                }
        states = [self.state[weight] for weight in weights]
        return [state["exp_avg"] for state in states], [state["exp_avg_sq"] for state in states]


def _trust_ratios(weights: _Tensors, update: _Tensors) -> list[Tensor]:
    """|w| / |u| of each tensor, 1 where either is 0; tensors on the device, never numbers in Python."""
    of_weights = torch.stack(torch._foreach_norm(weights))
    of_update = torch.stack(torch._foreach_norm(update))
    usable = (of_weights > 0) & (of_update > 0)
    return list(torch.where(usable, of_weights / of_update, 1.0).unbind())
