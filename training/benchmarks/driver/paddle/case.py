"""A case in Paddle's types. A device is Paddle's name of it: `cpu`, `gpu:0`."""

from __future__ import annotations

from paddle import Tensor, nn

from benchmarks.driver import case
from utils.parameters import MeasurementSettings, TrainingSettings

Case = case.Case[nn.Layer, Tensor]
Context = case.Context[TrainingSettings, str]
MeasurementContext = case.Context[MeasurementSettings, str]
