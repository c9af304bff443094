"""Linear maps of rows whose number differs from batch to batch.

On a CPU in a low precision the products are oneDNN's, which compiles a kernel for every new shape and keeps 1,024 of
them. With samples as they lie, hardly two batches have as many rows: 60 steps of GLM's demo compiled 1,408 kernels.
So rows are filled up with zeros to a multiple of 64 (which leaves 117), and what they come to is cut off.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 (its usual name)
from torch import Tensor, nn

MULTIPLE = 64  # of rows: so many shapes fit into oneDNN's store


def filled(rows: Tensor) -> Tensor:
    """(T, size) -> the same, on a CPU in a low precision with zeros below up to a multiple of MULTIPLE rows."""
    missing = -len(rows) % MULTIPLE
    if not missing or rows.device.type != "cpu" or not torch.is_autocast_enabled("cpu"):
        return rows
    return F.pad(rows, (0, 0, 0, missing))


def linear(rows: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """rows weight^T + bias: (T, inputs), (outputs, inputs), (outputs,) -> (T, outputs)."""
    return F.linear(filled(rows), weight, bias)[: len(rows)]


class Linear(nn.Linear):
    """PyTorch's, for rows (T, inputs)."""

    def forward(self, rows: Tensor) -> Tensor:
        """(T, inputs) -> (T, outputs)."""
        return linear(rows, self.weight, self.bias)
