"""What a PyTorch case brings: model, data, loss and metric."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from benchmarks.driver import case

Context = case.Context[torch.device]
Case = case.Case[nn.Module, Tensor]
