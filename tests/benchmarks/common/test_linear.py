"""Linear maps of rows: the same products whatever the number of rows, and as many shapes as needed."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 (its usual name)
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.common.pytorch.linear import Linear, linear


class _Products(TorchDispatchMode):
    """The shapes of all matrix products, forward and backward."""

    def __init__(self) -> None:
        super().__init__()
        self.shapes: set[tuple[Any, ...]] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.overloadpacket in (torch.ops.aten.mm, torch.ops.aten.addmm):
            self.shapes.add(tuple(tuple(each.shape) for each in args))
        return func(*args, **(kwargs or {}))


def _products(sizes: range) -> set[tuple[Any, ...]]:
    torch.manual_seed(0)
    layer, products = Linear(16, 8), _Products()
    with products, torch.autocast("cpu", torch.bfloat16):
        for rows in sizes:
            layer(torch.randn(rows, 16, requires_grad=True)).float().sum().backward()
    return products.shapes


def test_batches_of_about_as_many_rows_share_the_shapes_of_their_products() -> None:
    assert _products(range(65, 129, 9)) == _products(range(128, 129))  # forward, and both gradients
    assert len(_products(range(128, 129))) == 3


@pytest.mark.parametrize("rows", [1, 63, 64, 65])
@pytest.mark.parametrize("low_precision", [True, False])
def test_what_is_filled_up_changes_no_value_and_no_gradient(rows: int, low_precision: bool) -> None:
    torch.manual_seed(0)
    values = torch.randn(rows, 16), torch.randn(8, 16), torch.randn(8)
    results = []
    for function in (linear, F.linear):
        inputs, weight, bias = (value.clone().requires_grad_() for value in values)
        with torch.autocast("cpu", torch.bfloat16, enabled=low_precision):
            output = function(inputs, weight, bias)
        output.float().square().sum().backward()
        results.append((output, inputs.grad, weight.grad, bias.grad))
    for ours, pytorchs in zip(*results, strict=True):
        torch.testing.assert_close(ours, pytorchs)
