"""What a Paddle case brings: model, data, loss and metric."""

from __future__ import annotations

from paddle import Tensor, nn

from benchmarks.driver import case

# The device is Paddle's name of it: `cpu`, `gpu:0`.
Context = case.Context[str]
Case = case.Case[nn.Layer, Tensor]
