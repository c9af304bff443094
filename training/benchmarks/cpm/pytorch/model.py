"""CPM-1: the GPT-2 form (Radford et al. 2019) for Chinese (Zhang et al. 2020, arXiv:2012.00413), to be read.

The same code is CPM-1-medium and the small demo. Hidden states are (tokens, hidden) without padding, see
`layout.py`; the output matrix is the word embedding, and its logits are never held for a whole batch, see
`loss.py`. Weights begin as Megatron's, from which CPM-1 was trained.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch.nn.functional as F  # noqa: N812 (its usual name)
from torch import Tensor, nn

from .layout import Layout
from .loss import TiedCrossEntropy, predict


@dataclass(frozen=True)
class CpmConfig:
    """The shape of a model; FlagPerf's names.

    `hidden_dropout` follows the embedding and each part of a layer, `attention_dropout` the attention probabilities.
    """

    vocab_size: int
    hidden_size: int
    num_layers: int
    num_attention_heads: int
    max_position_embeddings: int
    hidden_dropout: float = 0.1
    attention_dropout: float = 0.1
    layernorm_epsilon: float = 1e-5
    initializer_range: float = 0.02


@dataclass(frozen=True)
class CpmInputs:
    """A batch of B samples with T inputs, and as many labels.

    Attributes:
        input_ids, position_ids: (T,) int32.
        layout: which tokens belong together.
        labels: (T,) int64, the token that follows each input.
    """

    input_ids: Tensor
    position_ids: Tensor
    layout: Layout
    labels: Tensor


class Attention(nn.Module):
    """Causal multi-head self-attention with its output projection."""

    def __init__(self, config: CpmConfig) -> None:
        super().__init__()
        self.heads = config.num_attention_heads
        self.dropout = config.attention_dropout
        self.query_key_value = nn.Linear(config.hidden_size, 3 * config.hidden_size)
        self.output = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, hidden: Tensor, layout: Layout) -> Tensor:
        """(T, hidden) -> (T, hidden)."""
        projected = self.query_key_value(hidden).view(len(hidden), 3, self.heads, -1)
        mixed = layout.attend(projected, self.dropout if self.training else 0.0)
        output: Tensor = self.output(mixed.flatten(-2))
        return output


class FeedForward(nn.Module):
    """Two linear maps with GELU (its tanh form, as GPT-2) between them."""

    def __init__(self, config: CpmConfig) -> None:
        super().__init__()
        self.wide = nn.Linear(config.hidden_size, 4 * config.hidden_size)
        self.narrow = nn.Linear(4 * config.hidden_size, config.hidden_size)

    def forward(self, hidden: Tensor) -> Tensor:
        """(T, hidden) -> (T, hidden)."""
        narrow: Tensor = self.narrow(F.gelu(self.wide(hidden), approximate="tanh"))
        return narrow


class Layer(nn.Module):
    """Attention and feed-forward part, each normalised before and added to what came in."""

    def __init__(self, config: CpmConfig) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(config.hidden_size, config.layernorm_epsilon)
        self.attention = Attention(config)
        self.feed_forward_norm = nn.LayerNorm(config.hidden_size, config.layernorm_epsilon)
        self.feed_forward = FeedForward(config)
        self.dropout = nn.Dropout(config.hidden_dropout)

    def forward(self, hidden: Tensor, layout: Layout) -> Tensor:
        """(T, hidden) -> (T, hidden)."""
        hidden = hidden + self.dropout(self.attention(self.attention_norm(hidden), layout))
        added: Tensor = hidden + self.dropout(self.feed_forward(self.feed_forward_norm(hidden)))
        return added


class CpmModel(nn.Module):
    """A causal language model."""

    def __init__(self, config: CpmConfig) -> None:
        super().__init__()
        self.config = config
        self.word = nn.Embedding(config.vocab_size, config.hidden_size)
        self.position = nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.dropout = nn.Dropout(config.hidden_dropout)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.num_layers))
        self.final_norm = nn.LayerNorm(config.hidden_size, config.layernorm_epsilon)
        self._initialise()

    def forward(self, inputs: CpmInputs) -> Tensor:
        """() float32: cross entropy summed over the labels, in nats."""
        loss: Tensor = TiedCrossEntropy.apply(  # type: ignore[no-untyped-call]
            self.hidden(inputs), self.word.weight, inputs.labels
        )
        return loss

    def predict(self, inputs: CpmInputs) -> tuple[Tensor, Tensor]:
        """The likeliest next tokens (T,) int64, and `forward`'s sum."""
        return predict(self.hidden(inputs), self.word.weight, inputs.labels)

    def hidden(self, inputs: CpmInputs) -> Tensor:
        """The last hidden states (T, hidden); times the word embedding they are the logits."""
        hidden = self.dropout(self.word(inputs.input_ids) + self.position(inputs.position_ids))
        for layer in self.layers:
            hidden = layer(hidden, inputs.layout)
        normalised: Tensor = self.final_norm(hidden)
        return normalised

    def _initialise(self) -> None:
        """Normal weights, zero biases; maps that add to the residual stream start smaller by sqrt(2 layers)."""
        std = self.config.initializer_range
        residual = std / (2 * self.config.num_layers) ** 0.5
        for name, module in self.named_modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                adds = name.endswith(("attention.output", "feed_forward.narrow"))
                nn.init.normal_(module.weight, std=residual if adds else std)
            if isinstance(module, nn.Linear):
                nn.init.zeros_(module.bias)
