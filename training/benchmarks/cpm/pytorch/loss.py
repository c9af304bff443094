"""Cross entropy of tied output logits, without ever holding the logits of a whole batch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.autograd.function import once_differentiable

from benchmarks.common.pytorch.linear import MULTIPLE, filled

_CPU_LOGITS = 1 << 22  # of one block: large enough for the products, small enough for the caches
_SMALLEST = torch.finfo(torch.float32).tiny  # probability that has all of its digits
_DEVICE_LOGITS = 1 << 27  # large enough to fill a GPU, at most 1 GiB


class TiedCrossEntropy(torch.autograd.Function):
    """sum over rows i of -log softmax(hidden[i] weight^T)[labels[i]], in nats, float32.

    The logits of a block of rows are made, used for the loss and for both gradients, and dropped: neither they
    nor their gradient ever leave the block. The products are in autocast's type where it is on, softmax and
    sums in float32. Gradients are those at a factor of 1; backward multiplies them.
    """

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, labels: Tensor) -> Tensor:
        rows, words = _as_multiplied(hidden), _as_multiplied(weight)
        total = torch.zeros((), device=hidden.device)
        of_hidden = torch.empty_like(rows)
        of_weight = torch.zeros_like(weight, dtype=torch.float32)
        for block in _blocks(rows, words):
            losses, probabilities = _losses_and_probabilities(_logits(rows[block], words), labels[block])
            total += losses.sum()
            probabilities[torch.arange(len(losses), device=hidden.device), labels[block]] -= 1
            of_logits = filled(probabilities.to(rows.dtype))
            of_hidden[block] = (of_logits @ words)[: len(losses)]
            of_weight += of_logits.T @ filled(rows[block])
        ctx.save_for_backward(of_hidden.to(hidden.dtype), of_weight.to(weight.dtype))
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, factor: Tensor) -> tuple[Tensor, Tensor, None]:
        of_hidden, of_weight = ctx.saved_tensors
        return of_hidden * factor, of_weight * factor, None


@torch.no_grad()
def predict(hidden: Tensor, weight: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The likeliest token of each row (T,) int64, and the cross entropy summed over rows, () float32."""
    rows, words = _as_multiplied(hidden), _as_multiplied(weight)
    total = torch.zeros((), device=hidden.device)
    predicted = torch.empty_like(labels)
    for block in _blocks(rows, words):
        logits = _logits(rows[block], words)
        predicted[block] = logits.argmax(dim=-1)
        total += _losses_and_probabilities(logits, labels[block])[0].sum()
    return predicted, total


def _losses_and_probabilities(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Of each row -log softmax at its label (rows,), and its softmax (rows, vocabulary), both float32."""
    probabilities = logits.softmax(dim=-1, dtype=torch.float32)
    of_labels = probabilities.gather(-1, labels[:, None]).squeeze(-1)
    # To look at a device's numbers is to wait for it; on a CPU it spares two passes over all logits. Where operations
    # are counted without data there is nothing to look at.
    looked_at = logits.device.type == "cpu" and not isinstance(logits, FakeTensor)
    if looked_at and bool((of_labels >= _SMALLEST).all()):
        return -of_labels.log(), probabilities
    return _exact_losses(logits, probabilities, labels), probabilities


def _exact_losses(logits: Tensor, probabilities: Tensor, labels: Tensor) -> Tensor:
    """-log softmax, also where the label's probability is too small to be a number.

    log sum exp = largest logit - log of its probability, without a second pass of exponentials.
    """
    log_sum = logits.amax(dim=-1).float() - probabilities.amax(dim=-1).log()
    return log_sum - logits.gather(-1, labels[:, None]).squeeze(-1).float()


def _logits(rows: Tensor, words: Tensor) -> Tensor:
    return (filled(rows) @ words.T)[: len(rows)]


def _as_multiplied(tensor: Tensor) -> Tensor:
    """`tensor` in the type in which autocast multiplies matrices."""
    kind = tensor.device.type
    detached = tensor.detach()
    return detached.to(torch.get_autocast_dtype(kind)) if torch.is_autocast_enabled(kind) else detached


def _blocks(rows: Tensor, words: Tensor) -> list[slice]:
    """Rows whose logits fit into one block: a multiple of MULTIPLE, so that only the last is filled up."""
    logits = _CPU_LOGITS if rows.device.type == "cpu" else _DEVICE_LOGITS
    size = max(1, logits // len(words) // MULTIPLE) * MULTIPLE
    return [slice(begin, begin + size) for begin in range(0, len(rows), size)]
