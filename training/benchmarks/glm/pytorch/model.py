"""GLM (Du et al. 2022, arXiv:2103.10360) with its multi-token cloze head, written to be read.

The same code is GLM-large and the small demo. A blank, `[MASK]` in the source, is filled by generation: from a
start token on, each token of an answer is predicted from the source and the tokens before it. A candidate's
score is the log probability of its tokens and of the end token after them, summed. Nothing is computed that
no score depends on: logits exist for the answers' tokens only, and in the last layer only they ask.

Modules bear the names of GLM's released code, so that its checkpoints fit as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812 (its usual name)
from torch import Tensor, nn

from benchmarks.common.pytorch.linear import linear
from benchmarks.common.pytorch.transformer import Layer, SelfAttention, initialise
from benchmarks.common.shape import TransformerConfig

from .layout import Layout
from .mimetic import begin_attention, begin_embeddings


@dataclass(frozen=True)
class GlmConfig(TransformerConfig):
    """The shape of a model. Both position tables have a row more than `max_position_embeddings`, as GLM's."""

    mimetic_initialization: bool = False  # see mimetic.py; `initializer_range` is then the other weights'


@dataclass(frozen=True)
class GlmInputs:
    """B questions with T rows (sources, then answers), A of them answers', and C candidates in all.

    Attributes:
        input_ids: (T,) int32.
        position_ids: (T,) int32 place in the source; of an answer's tokens the place of the blank.
        block_position_ids: (T,) int32 0 in the source, 1 at the start token, 2, 3, ... within a candidate.
        layout: which rows belong together.
        target_rows: (M,) int64 the answers' row that says each target: a candidate's first token is said by the
            start token, which all candidates of a question share.
        targets: (M,) int64 each candidate's tokens and the end token.
        candidate_of: (M,) int64 which candidate a target belongs to: the place of its score in the scores.
        most_candidates: K, of the question with most.
        candidate_places: (C,) int64 the places that hold a candidate, of B x K; the others are padding.
        labels: (B,) int64 the right candidate, for the loss.
        exact_match: (B, K) float32 what each candidate would earn.
        f1: (B, K) float32 likewise.
    """

    input_ids: Tensor
    position_ids: Tensor
    block_position_ids: Tensor
    layout: Layout
    target_rows: Tensor
    targets: Tensor
    candidate_of: Tensor
    most_candidates: int
    candidate_places: Tensor
    labels: Tensor
    exact_match: Tensor
    f1: Tensor


class Transformer(nn.Module):
    """Two-dimensional positions, layers, final normalisation."""

    def __init__(self, config: GlmConfig) -> None:
        super().__init__()
        positions = config.max_position_embeddings + 1
        self.position_embeddings = nn.Embedding(positions, config.hidden_size)
        self.block_position_embeddings = nn.Embedding(positions, config.hidden_size)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.num_layers))
        self.final_layernorm = nn.LayerNorm(config.hidden_size, config.layernorm_epsilon)
        self.dropout = nn.Dropout(config.hidden_dropout)

    def forward(self, words: Tensor, inputs: GlmInputs) -> Tensor:
        """Word vectors (T, hidden) -> the answers' hidden states (A, hidden)."""
        places = self.position_embeddings(inputs.position_ids)
        hidden = self.dropout(words + places + self.block_position_embeddings(inputs.block_position_ids))
        *lower, last = self.layers
        for layer in lower:
            hidden = layer(hidden, inputs.layout)
        output: Tensor = self.final_layernorm(last(hidden, inputs.layout, inputs.layout.source.rows))
        return output


class GlmForMultiTokenCloze(nn.Module):
    """GLM that scores the candidates of questions. The output matrix is the word embedding."""

    def __init__(self, config: GlmConfig) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(config.vocab_size, config.hidden_size)
        self.transformer = Transformer(config)
        initialise(self, config)
        if config.mimetic_initialization:
            self._initialise_mimetically()

    def forward(self, inputs: GlmInputs) -> Tensor:
        """(B, K) float32 log probabilities of the candidates, -inf in padding."""
        hidden = self.transformer(self.word_embeddings(inputs.input_ids), inputs)
        logits = linear(hidden, self.word_embeddings.weight)
        totals = logits.float().logsumexp(dim=-1)
        of_tokens = logits[inputs.target_rows, inputs.targets].float() - totals[inputs.target_rows]
        questions = inputs.layout.source.samples
        places = questions * inputs.most_candidates
        scores = of_tokens.new_zeros(places).index_add(0, inputs.candidate_of, of_tokens)
        padded = torch.full_like(scores, -torch.inf).index_copy(
            0, inputs.candidate_places, scores[inputs.candidate_places]
        )
        return padded.view(questions, inputs.most_candidates)

    def _initialise_mimetically(self) -> None:
        begin_embeddings(self.word_embeddings, self.transformer.position_embeddings)
        for part in self.modules():
            if isinstance(part, SelfAttention):
                begin_attention(part.query_key_value, part.dense, part.heads)


def cloze_loss_sum(scores: Tensor, inputs: GlmInputs) -> Tensor:
    """(1,) float32: cross entropy over each question's candidates, summed over questions, in nats."""
    return F.cross_entropy(scores, inputs.labels, reduction="sum").unsqueeze(0)
