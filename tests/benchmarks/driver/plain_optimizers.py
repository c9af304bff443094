"""LAMB, AdamW and clipping in plain float64, a tensor at a time, and a problem to be optimized."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from benchmarks.driver.schedules import make_schedule

Array = NDArray[np.float64]
Update = Callable[[Array, Array, float, float], Array]
STEPS, BETA_1, BETA_2, EPSILON, DECAY, CLIP = 50, 0.9, 0.999, 1e-6, 0.01, 1.0
RATE = make_schedule(
    "linear", peak=0.02, warmup_steps=5, decay_steps=40, end_factor=0.0
)  # ends before the run


def clipped(gradients: list[Array]) -> list[Array]:
    """All scaled alike, to a common norm of at most `CLIP`."""
    norm = np.sqrt(sum((gradient**2).sum() for gradient in gradients))
    return [gradient * min(1.0, CLIP / norm) for gradient in gradients]


def lamb_update(weight: Array, adam: Array, decay: float, rate: float) -> Array:
    """Algorithm 2 of arXiv:1904.00962; the ratio is for tensors with weight decay only."""
    update = adam + decay * weight
    weight_norm, update_norm = np.linalg.norm(weight), np.linalg.norm(update)
    ratio = weight_norm / update_norm if decay and weight_norm > 0 and update_norm > 0 else 1.0
    return weight - rate * ratio * update


def adamw_update(weight: Array, adam: Array, decay: float, rate: float) -> Array:
    """Algorithm 2 of arXiv:1711.05101."""
    return weight - rate * decay * weight - rate * adam


def trained(weights: list[Array], update: Update) -> list[Array]:
    """`weights` after 50 steps."""
    first, second = [np.zeros_like(w) for w in weights], [np.zeros_like(w) for w in weights]
    for step in range(STEPS):
        for index, gradient in enumerate(clipped(gradients(weights, step))):
            first[index] = BETA_1 * first[index] + (1 - BETA_1) * gradient
            second[index] = BETA_2 * second[index] + (1 - BETA_2) * gradient**2
            mean = first[index] / (1 - BETA_1 ** (step + 1))
            square = second[index] / (1 - BETA_2 ** (step + 1))
            adam = mean / (np.sqrt(square) + EPSILON)
            decay = DECAY if weights[index].ndim > 1 else 0.0
            weights[index] = update(weights[index], adam, decay, RATE(step))
    return weights


def gradients(weights: list[Array], step: int) -> list[Array]:
    """Of 0.5 |w - target|^2 times a push that changes: some steps are clipped, some are not."""
    generator = np.random.default_rng(1)
    targets = [generator.normal(size=w.shape) for w in weights]
    push = 1.0 if step % 3 else 0.05
    return [push * (w - t * np.cos(0.3 * step)) for w, t in zip(weights, targets, strict=True)]


def start() -> list[Array]:
    """A matrix, a vector, and a matrix of norm 0, whose trust ratio must be 1."""
    generator = np.random.default_rng(0)
    values = [generator.normal(size=(4, 3)), generator.normal(size=3), np.zeros((2, 3))]
    return [value.astype(np.float32).astype(np.float64) for value in values]
