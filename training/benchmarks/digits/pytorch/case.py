"""Which digit is it? A small convolutional network on images of 8 x 8 pixels."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.driver.batches import Batch
from benchmarks.driver.case import Dataset
from benchmarks.driver.pytorch.case import Context
from benchmarks.driver.sampling import Samples


class Case:
    metric: ClassVar[str] = "accuracy"  # its target is target_accuracy of the configuration; larger is better
    flops_formula: ClassVar[str] = "2 a multiply-add of the three layers, x 3 for the backward pass"

    def __init__(self, context: Context) -> None:
        self.width: int = context.settings["width"]  # a name of the case's own _base.py
        self.training = np.load(context.data_dir / "training.npy")  # (n, 65) uint8: 64 pixels and the label
        self.held_out = np.load(context.data_dir / "held_out.npy")
        weights = 9 * self.width + 9 * self.width * 2 * self.width  # of the convolutions, each used 64 times
        self.flops = 3.0 * 2 * (64 * weights + 16 * 2 * self.width * 10)

    def build_model(self) -> nn.Module:
        first = nn.Conv2d(1, self.width, kernel_size=3, padding=1)
        second = nn.Conv2d(self.width, 2 * self.width, kernel_size=3, padding=1)
        last = nn.Linear(4 * 4 * 2 * self.width, 10)
        return nn.Sequential(first, nn.ReLU(), second, nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), last)

    def baseline(self) -> float | None:
        return float(np.bincount(self.held_out[:, 64]).max() / len(self.held_out))  # always the same answer

    def training_data(self) -> Dataset:
        return Dataset(len(self.training), partial(self._batch, self.training))

    def evaluation_data(self) -> Dataset:
        return Dataset(len(self.held_out), partial(self._batch, self.held_out))

    def loss(self, model: nn.Module, inputs: tuple[Tensor, Tensor]) -> Tensor:
        images, labels = inputs
        return functional.cross_entropy(model(images).float(), labels, reduction="sum").reshape(1)

    def evaluate(self, model: nn.Module, inputs: tuple[Tensor, Tensor]) -> Tensor:
        images, labels = inputs
        right = (model(images).argmax(dim=-1) == labels).sum()
        return torch.stack([right, torch.full_like(right, len(labels))]).float()

    def metrics(self, sums: list[float]) -> dict[str, float]:
        right, count = sums
        return {"accuracy": right / count}

    def _batch(self, table: NDArray[Any], samples: Samples) -> Batch:
        rows, count = torch.from_numpy(table[samples.rows]), len(samples)
        inputs = (rows[:, :64].reshape(-1, 1, 8, 8) / 16.0, rows[:, 64].long())
        return Batch(
            inputs, samples=count, tokens=None, flops=self.flops * count, loss_counts=(float(count),)
        )
