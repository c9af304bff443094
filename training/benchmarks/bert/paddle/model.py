"""BERT with its two pre-training heads (Devlin et al. 2019, arXiv:1810.04805), written to be read.

The same code is BERT-large and the small demo. Hidden states are (tokens, hidden), see `layout.py`. Nothing
is computed that no label depends on: the last layer's queries, its feed-forward part and the heads see
only [CLS] and the masked tokens, the vocabulary's logits only the masked tokens.
"""

from __future__ import annotations

import paddle
import paddle.nn.functional as F  # noqa: N812 (its usual name)
from paddle import Tensor, nn

from benchmarks.bert.inputs import BertInputs
from benchmarks.bert.shape import BertConfig

from .layout import Layout

Inputs = BertInputs[Tensor, Layout]


def linear_map(rows: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """`rows` @ `weight` + `bias`.

    On a CPU a product with ones spreads the bias over the rows: its gradient is then a product too, where
    Paddle's sum over rows takes 40 times as long.
    """
    if not rows.place.is_cpu_place():
        return F.linear(rows, weight, bias)
    return rows @ weight + paddle.ones([rows.shape[0], 1]) @ bias.unsqueeze(0)


class Linear(nn.Linear):
    """A linear map from normally distributed weights (inputs, outputs), as BERT's authors, and a bias of 0."""

    def __init__(self, config: BertConfig, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs, weight_attr=_weights(config))

    def forward(self, rows: Tensor) -> Tensor:
        """(rows, inputs) -> (rows, outputs)."""
        return linear_map(rows, self.weight, self.bias)


class Embeddings(nn.Layer):
    """Sum of the token's, its position's and its segment's vectors, normalised."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.word = _embedding(config, config.vocab_size)
        self.position = _embedding(config, config.max_position_embeddings)
        self.segment = _embedding(config, config.type_vocab_size)
        self.norm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.dropout = _dropout(config.hidden_dropout_prob)

    def forward(self, inputs: Inputs) -> Tensor:
        """(T, hidden)."""
        vectors = self.word(inputs.input_ids) + self.position(inputs.position_ids)
        hidden: Tensor = self.dropout(self.norm(vectors + self.segment(inputs.segment_ids)))
        return hidden


class Attention(nn.Layer):
    """Multi-head self-attention with its output projection."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        size = config.hidden_size
        self.heads = config.num_attention_heads
        self.dropout = config.attention_probs_dropout_prob
        self.query = Linear(config, size, size)
        self.key = Linear(config, size, size)
        self.value = Linear(config, size, size)
        self.output = Linear(config, size, size)

    def forward(self, tokens: Tensor, layout: Layout, asking: Tensor | None, queries: int | None) -> Tensor:
        """`tokens` (T, hidden) are attended to by `asking` (B * queries, hidden), or by themselves."""
        if asking is None:
            projected = _side_by_side(tokens, self.query, self.key, self.value)
        else:
            projected = [self.query(asking), *_side_by_side(tokens, self.key, self.value)]
        query, key, value = (rows.reshape([rows.shape[0], self.heads, -1]) for rows in projected)
        dropout = self.dropout if self.training else 0.0
        mixed = layout.attend(query, key, value, queries=queries, dropout=dropout)
        output: Tensor = self.output(mixed.flatten(-2))
        return output


def _side_by_side(rows: Tensor, *maps: nn.Linear) -> list[Tensor]:
    """The maps' outputs, by one matrix product: `rows` are read, and cast to 16 bits, once."""
    weight = paddle.concat([linear.weight for linear in maps], axis=1)
    bias = paddle.concat([linear.bias for linear in maps])
    return linear_map(rows, weight, bias).chunk(len(maps), axis=-1)


class FeedForward(nn.Layer):
    """Two linear maps with GELU between them."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.wide = Linear(config, config.hidden_size, config.intermediate_size)
        self.narrow = Linear(config, config.intermediate_size, config.hidden_size)
        self.gelu = nn.GELU(approximate=config.gelu == "tanh")

    def forward(self, rows: Tensor) -> Tensor:
        """(rows, hidden) -> (rows, hidden)."""
        narrow: Tensor = self.narrow(self.gelu(self.wide(rows)))
        return narrow


class EncoderLayer(nn.Layer):
    """Attention and feed-forward part, each with dropout, residual connection and normalisation."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.pre_norm = config.pre_layer_norm
        self.attention = Attention(config)
        self.attention_norm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.feed_forward = FeedForward(config)
        self.feed_forward_norm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.dropout = _dropout(config.hidden_dropout_prob)

    def forward(
        self, tokens: Tensor, layout: Layout, chosen: Tensor | None = None, queries: int | None = None
    ) -> Tensor:
        """(T, hidden) -> (T, hidden), or of the rows `chosen` only: -> (B * queries, hidden)."""
        seen = self.attention_norm(tokens) if self.pre_norm else tokens
        asking = None if chosen is None else paddle.gather(seen, chosen)
        kept = tokens if chosen is None else paddle.gather(tokens, chosen)
        hidden: Tensor = kept + self.dropout(self.attention(seen, layout, asking, queries))
        if self.pre_norm:
            hidden = hidden + self.dropout(self.feed_forward(self.feed_forward_norm(hidden)))
        else:
            hidden = self.attention_norm(hidden)
            hidden = self.feed_forward_norm(hidden + self.dropout(self.feed_forward(hidden)))
        return hidden


class MaskedTokenHead(nn.Layer):
    """Logits over the vocabulary; the output matrix is the word embedding."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.transform = Linear(config, config.hidden_size, config.hidden_size)
        self.gelu = nn.GELU(approximate=config.gelu == "tanh")
        self.norm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.bias = self.create_parameter([config.vocab_size], is_bias=True)

    def forward(self, rows: Tensor, words: Tensor) -> Tensor:
        """(M, hidden) and the word embedding (vocabulary, hidden) -> (M, vocabulary)."""
        hidden = self.norm(self.gelu(self.transform(rows)))
        logits: Tensor = hidden.matmul(words, transpose_y=True) + self.bias
        return logits


class BertForPreTraining(nn.Layer):
    """BERT with masked language model and next sentence heads."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.config = config
        self.embeddings = Embeddings(config)
        self.layers = nn.LayerList([EncoderLayer(config) for _ in range(config.num_hidden_layers)])
        self.final_norm = None
        if config.pre_layer_norm:
            self.final_norm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.pooler = Linear(config, config.hidden_size, config.hidden_size)
        self.next_sentence = Linear(config, config.hidden_size, 2)
        self.masked_token = MaskedTokenHead(config)

    def forward(self, inputs: Inputs) -> tuple[Tensor, Tensor]:
        """Logits of the masked tokens (M, vocabulary) and of the next sentence (B, 2)."""
        hidden = self.embeddings(inputs)
        *lower, last = self.layers
        for layer in lower:
            hidden = layer(hidden, inputs.layout)
        hidden = last(hidden, inputs.layout, inputs.looked_at, inputs.queries)
        if self.final_norm is not None:
            hidden = self.final_norm(hidden)
        classes = hidden.reshape([-1, inputs.queries, hidden.shape[-1]])[:, 0]
        next_sentence = self.next_sentence(F.tanh(self.pooler(classes)))
        masked = self.masked_token(paddle.gather(hidden, inputs.label_places), self.embeddings.word.weight)
        return masked, next_sentence


def pretraining_loss_sums(masked: Tensor, next_sentence: Tensor, inputs: Inputs) -> Tensor:
    """(2,) float32: cross entropy summed over the masked tokens, and over the samples, in nats."""
    of_tokens = F.cross_entropy(masked.astype("float32"), inputs.labels, reduction="sum")
    of_samples = F.cross_entropy(
        next_sentence.astype("float32"), inputs.next_sentence_labels, reduction="sum"
    )
    return paddle.stack([of_tokens, of_samples])


def _weights(config: BertConfig) -> paddle.ParamAttr:
    """Normal weights, as BERT's authors."""
    return paddle.ParamAttr(initializer=nn.initializer.Normal(std=config.initializer_range))


def _embedding(config: BertConfig, entries: int) -> nn.Embedding:
    return nn.Embedding(entries, config.hidden_size, weight_attr=_weights(config))


def _dropout(probability: float) -> nn.Layer:
    return nn.Dropout(probability) if probability else nn.Identity()
