"""Linear maps of rows whose number differs from batch to batch.

On a CPU in a low precision the products are oneDNN's, which compiles a kernel for every new shape. Its store holds
1,024 of them: with samples as they lie, hardly two batches have as many rows, and nine tenths of a small model's
step went into compiling. So rows are filled up with zeros to a multiple of 64; nothing is computed from these.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 (its usual name)
from torch import Tensor, nn

_MULTIPLE = 64


def filled(rows: Tensor) -> Tensor:
    """(T, size) -> the same, on a CPU in a low precision with zeros below up to a multiple of 64 rows."""
    missing = -len(rows) % _MULTIPLE
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
