"""One step's numbers against the CPU's: what is within the tolerance, and what is not."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from benchmarks.driver.pytorch.one_step import TOLERANCES, StepNumbers, compared
from benchmarks.driver.vendor_facts import VendorFacts


def test_wrong_gradients_are_out_of_tolerance_and_so_is_nan() -> None:
    right = StepNumbers(2.0, {"a": torch.ones(8), "b": torch.zeros(3)})
    assert right.differences(right) == {"loss": 0.0, "norm": 0.0, "gradients": 0.0}
    turned = StepNumbers(2.0, {"a": torch.tensor([1.0, -1.0] * 4), "b": torch.zeros(3)})
    apart = turned.differences(right)
    assert apart["norm"] == pytest.approx(0.0)
    assert apart["gradients"] > TOLERANCES["bf16"].gradients
    lost = StepNumbers(2.0, {"a": torch.full((8,), torch.nan), "b": torch.zeros(3)}).differences(right)
    assert not lost["norm"] <= TOLERANCES["bf16"].norm


class Half:
    """Computes on the CPU and, on a device, in the configured precision alone."""

    def step_numbers(self, facts: VendorFacts, precision: str | None = None) -> StepNumbers:
        if facts.device_type == "cuda" and precision == "fp32":
            raise RuntimeError("no kernel\nat all")
        return StepNumbers(2.0, {"a": torch.ones(8)}, "bf16")


def test_a_precision_without_a_kernel_does_not_take_the_other_one() -> None:
    half: Any = Half()
    rows = compared(half, VendorFacts("cuda", "nccl"))["precisions"]
    assert rows["bf16"]["within"]
    assert rows["fp32"]["error"] == "no kernel"
    assert not rows["fp32"]["within"]
