"""A case in PyTorch's types."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from benchmarks.driver import case
from utils.parameters import MeasurementSettings, TrainingSettings

Case = case.Case[nn.Module, Tensor]
Context = case.Context[TrainingSettings, torch.device]
MeasurementContext = case.Context[MeasurementSettings, torch.device]
