"""The layers that GLM and CPM-1 have in common: both were trained with Megatron.

Modules bear the names of its checkpoints, so that these fit as they are. Hidden states are rows (tokens, hidden);
which rows belong together is a layout's business, an object whose `attend` takes the rows (tokens, heads, d) of
queries, keys and values and the dropout of the attention probabilities.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch.nn.functional as F  # noqa: N812 (its usual name)
from torch import Tensor, nn

from benchmarks.common.initial_weights import check_form, read_weights
from benchmarks.common.shape import TransformerConfig

from .linear import Linear, linear


class SelfAttention(nn.Module):
    """Multi-head attention with its output projection."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        size = config.hidden_size
        self.heads = config.num_attention_heads
        self.dropout = config.attention_dropout
        self.query_key_value = Linear(size, 3 * size)
        self.dense = Linear(size, size)

    def forward(self, rows: Tensor, layout: Any, first: int) -> Tensor:
        """(T, hidden) -> (T - first, hidden): the rows from `first` on ask."""
        if first:
            size = self.dense.in_features
            weight, bias = self.query_key_value.weight, self.query_key_value.bias
            query = linear(rows[first:], weight[:size], bias[:size])
            key, value = linear(rows, weight[size:], bias[size:]).chunk(2, dim=-1)
        else:
            query, key, value = self.query_key_value(rows).chunk(3, dim=-1)
        q, k, v = (part.view(len(part), self.heads, -1) for part in (query, key, value))
        mixed = layout.attend(q, k, v, self.dropout if self.training else 0.0)
        output: Tensor = self.dense(mixed.flatten(-2))
        return output


class FeedForward(nn.Module):
    """Two linear maps with GELU (its tanh form, as GPT-2) between them."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.dense_h_to_4h = Linear(config.hidden_size, 4 * config.hidden_size)
        self.dense_4h_to_h = Linear(4 * config.hidden_size, config.hidden_size)

    def forward(self, rows: Tensor) -> Tensor:
        """(rows, hidden) -> (rows, hidden)."""
        narrow: Tensor = self.dense_4h_to_h(F.gelu(self.dense_h_to_4h(rows), approximate="tanh"))
        return narrow


class Layer(nn.Module):
    """Attention and feed-forward part, each normalised before, and added to what came in after dropout."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.input_layernorm = nn.LayerNorm(config.hidden_size, config.layernorm_epsilon)
        self.attention = SelfAttention(config)
        self.post_attention_layernorm = nn.LayerNorm(config.hidden_size, config.layernorm_epsilon)
        self.mlp = FeedForward(config)
        self.dropout = nn.Dropout(config.hidden_dropout)

    def forward(self, rows: Tensor, layout: Any, first: int = 0) -> Tensor:
        """(T, hidden) -> (T - first, hidden): only the rows from `first` on are computed, which see all."""
        attended = self.attention(self.input_layernorm(rows), layout, first)
        hidden = (rows[first:] if first else rows) + self.dropout(attended)
        output: Tensor = hidden + self.dropout(self.mlp(self.post_attention_layernorm(hidden)))
        return output


def initialise(model: nn.Module, config: TransformerConfig) -> None:
    """Normal weights, narrower where a part's output joins the residual stream (as GPT-2); zero biases."""
    narrow = config.initializer_range / (2 * config.num_layers) ** 0.5
    for name, module in model.named_modules():
        if isinstance(module, (nn.Linear, nn.Embedding)):
            is_output = name.endswith(("attention.dense", "dense_4h_to_h"))
            nn.init.normal_(module.weight, std=narrow if is_output else config.initializer_range)
        if isinstance(module, nn.Linear):
            nn.init.zeros_(module.bias)


def load_checkpoint(model: nn.Module, path: Path, *, case: str) -> None:
    """Copy the weights of the converted initial checkpoint `path` of the case in folder `case` into `model`.

    Raises:
        FlagPerfError: there is none, it is not converted, or it cannot be read.
        ProblemsError: tensors are missing, not expected or of another shape: all of them; nothing is copied.
    """
    weights = read_weights(path, model=case, framework="pt").tensors
    present, wanted = (
        {name: tuple(tensor.shape) for name, tensor in tensors.items()}
        for tensors in (weights, dict(model.named_parameters()))
    )
    check_form(present, wanted, where=str(path))
    model.load_state_dict(weights)
