"""BERT with its two pre-training heads (Devlin et al. 2019, arXiv:1810.04805), written to be read.

The same code is BERT-large and the small demo. Hidden states are (tokens, hidden), see `layout.py`. Nothing
is computed that no label depends on: the last layer's queries, its feed-forward part and the heads see
only [CLS] and the masked tokens, the vocabulary's logits only the masked tokens.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 (its usual name)
from torch import Tensor, nn

from benchmarks.bert.inputs import BertInputs
from benchmarks.bert.shape import BertConfig
from benchmarks.common.pytorch.linear import Linear, linear

from .layout import Layout

Inputs = BertInputs[Tensor, Layout]

# Of the forms of GELU, as PyTorch names them.
_APPROXIMATION = {"tanh": "tanh", "erf": "none"}


class Embeddings(nn.Module):
    """Sum of the token's, its position's and its segment's vectors, normalised."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.word = nn.Embedding(config.vocab_size, config.hidden_size)
        self.position = nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.segment = nn.Embedding(config.type_vocab_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, inputs: Inputs) -> Tensor:
        """(T, hidden)."""
        vectors = self.word(inputs.input_ids) + self.position(inputs.position_ids)
        hidden: Tensor = self.dropout(self.norm(vectors + self.segment(inputs.segment_ids)))
        return hidden


class Attention(nn.Module):
    """Multi-head self-attention with its output projection."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        size = config.hidden_size
        self.heads = config.num_attention_heads
        self.dropout = config.attention_probs_dropout_prob
        # Three matrices, not one: LAMB scales each by a ratio of its own, as in the reference.
        self.query = Linear(size, size)
        self.key = Linear(size, size)
        self.value = Linear(size, size)
        self.output = Linear(size, size)

    def forward(self, tokens: Tensor, layout: Layout, asking: Tensor | None, queries: int | None) -> Tensor:
        """`tokens` (T, hidden) are attended to by `asking` (B * queries, hidden), or by themselves."""
        if asking is None:
            projected = _side_by_side(tokens, self.query, self.key, self.value)
        else:
            projected = (self.query(asking), *_side_by_side(tokens, self.key, self.value))
        query, key, value = (rows.view(len(rows), self.heads, -1) for rows in projected)
        dropout = self.dropout if self.training else 0.0
        mixed = layout.attend(query, key, value, queries=queries, dropout=dropout)
        output: Tensor = self.output(mixed.flatten(-2))
        return output


def _side_by_side(rows: Tensor, *maps: nn.Linear) -> tuple[Tensor, ...]:
    """The maps' outputs, by one matrix product: `rows` are read, and cast to bf16, once."""
    weight = torch.cat([each.weight for each in maps])
    bias = torch.cat([each.bias for each in maps])
    return linear(rows, weight, bias).chunk(len(maps), dim=-1)


class FeedForward(nn.Module):
    """Two linear maps with GELU between them."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.wide = Linear(config.hidden_size, config.intermediate_size)
        self.narrow = Linear(config.intermediate_size, config.hidden_size)
        self.gelu = nn.GELU(_APPROXIMATION[config.gelu])

    def forward(self, rows: Tensor) -> Tensor:
        """(rows, hidden) -> (rows, hidden)."""
        narrow: Tensor = self.narrow(self.gelu(self.wide(rows)))
        return narrow


class Layer(nn.Module):
    """Attention and feed-forward part, each with dropout, residual connection and normalisation."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.pre_norm = config.pre_layer_norm
        self.attention = Attention(config)
        self.attention_norm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.feed_forward = FeedForward(config)
        self.feed_forward_norm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(
        self, tokens: Tensor, layout: Layout, chosen: Tensor | None = None, queries: int | None = None
    ) -> Tensor:
        """(T, hidden) -> (T, hidden), or of the rows `chosen` only: -> (B * queries, hidden)."""
        seen = self.attention_norm(tokens) if self.pre_norm else tokens
        asking = None if chosen is None else seen[chosen]
        kept = tokens if chosen is None else tokens[chosen]
        hidden: Tensor = kept + self.dropout(self.attention(seen, layout, asking, queries))
        if self.pre_norm:
            hidden = hidden + self.dropout(self.feed_forward(self.feed_forward_norm(hidden)))
        else:
            hidden = self.attention_norm(hidden)
            hidden = self.feed_forward_norm(hidden + self.dropout(self.feed_forward(hidden)))
        return hidden


class MaskedTokenHead(nn.Module):
    """Logits over the vocabulary; the output matrix is the word embedding."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.transform = Linear(config.hidden_size, config.hidden_size)
        self.gelu = nn.GELU(_APPROXIMATION[config.gelu])
        self.norm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))

    def forward(self, rows: Tensor, words: Tensor) -> Tensor:
        """(M, hidden) and the word embedding (vocabulary, hidden) -> (M, vocabulary)."""
        return linear(self.norm(self.gelu(self.transform(rows))), words, self.bias)


class BertForPreTraining(nn.Module):
    """BERT with masked language model and next sentence heads."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.config = config
        self.embeddings = Embeddings(config)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))
        self.final_norm = None
        if config.pre_layer_norm:
            self.final_norm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.pooler = Linear(config.hidden_size, config.hidden_size)
        self.next_sentence = Linear(config.hidden_size, 2)
        self.masked_token = MaskedTokenHead(config)
        self.apply(self._initialise)

    def forward(self, inputs: Inputs) -> tuple[Tensor, Tensor]:
        """Logits of the masked tokens (M, vocabulary) and of the next sentence (B, 2)."""
        hidden = self.embeddings(inputs)
        *lower, last = self.layers
        for layer in lower:
            hidden = layer(hidden, inputs.layout)
        hidden = last(hidden, inputs.layout, inputs.looked_at, inputs.queries)
        if self.final_norm is not None:
            hidden = self.final_norm(hidden)
        classes = hidden.unflatten(0, (-1, inputs.queries))[:, 0]
        next_sentence = self.next_sentence(torch.tanh(self.pooler(classes)))
        masked = self.masked_token(hidden[inputs.label_places], self.embeddings.word.weight)
        return masked, next_sentence

    def _initialise(self, module: nn.Module) -> None:
        """Normal weights, zero biases, as BERT's authors; normalisation starts as the identity."""
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=self.config.initializer_range)
        if isinstance(module, nn.Linear):
            nn.init.zeros_(module.bias)


def pretraining_loss_sums(masked: Tensor, next_sentence: Tensor, inputs: Inputs) -> Tensor:
    """(2,) float32: cross entropy summed over the masked tokens, and over the samples, in nats."""
    of_tokens = F.cross_entropy(masked.float(), inputs.labels, reduction="sum")
    of_samples = F.cross_entropy(next_sentence.float(), inputs.next_sentence_labels, reduction="sum")
    return torch.stack([of_tokens, of_samples])
