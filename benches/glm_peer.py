"""GLM's multi-token cloze as transformers writes its models, which does not have it: what a user would else have.

A padded batch of rows, a boolean mask for SDPA, modules with one projection for query, key and value, logits for the
last places alone (transformers' `logits_to_keep`), a loss of its own. Parameters have the names of GLM's released code.
Batches come in two forms:

- a row a candidate: its question's source and then the candidate, as GLM's released code trains;
- a row a question: its source and then all of its candidates, which do not see each other (the released code's
  "fast" form computes a source once as well).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 (its usual name)
from torch import Tensor, nn

from benchmarks.common.shape import TransformerConfig


@dataclass(frozen=True)
class Question:
    """Token ids of a source and of its candidates, the place of its blank, which candidate is right."""

    source: Sequence[int]
    blank: int
    candidates: Sequence[Sequence[int]]
    right: int


@dataclass
class Output:
    """What transformers' models give."""

    loss: Tensor
    scores: Tensor


class GlmAttention(nn.Module):
    """Self-attention by SDPA."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.heads = config.num_attention_heads
        self.query_key_value = nn.Linear(config.hidden_size, 3 * config.hidden_size)
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, hidden: Tensor, attention_mask: Tensor) -> Tensor:
        """(rows, L, hidden), and (rows, 1, L, L) true where a place sees another."""
        rows, length, size = hidden.shape
        parts = self.query_key_value(hidden).split(size, dim=-1)
        q, k, v = (part.view(rows, length, self.heads, -1).transpose(1, 2) for part in parts)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=attention_mask)
        output: Tensor = self.dense(mixed.transpose(1, 2).reshape(rows, length, size))
        return output


class GlmMlp(nn.Module):
    """Two linear maps with GELU (its tanh form) between them."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.dense_h_to_4h = nn.Linear(config.hidden_size, 4 * config.hidden_size)
        self.dense_4h_to_h = nn.Linear(4 * config.hidden_size, config.hidden_size)

    def forward(self, hidden: Tensor) -> Tensor:
        """(rows, L, hidden)."""
        output: Tensor = self.dense_4h_to_h(F.gelu(self.dense_h_to_4h(hidden), approximate="tanh"))
        return output


class GlmLayer(nn.Module):
    """Pre-normalised attention and feed-forward part."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.input_layernorm = nn.LayerNorm(config.hidden_size, config.layernorm_epsilon)
        self.attention = GlmAttention(config)
        self.post_attention_layernorm = nn.LayerNorm(config.hidden_size, config.layernorm_epsilon)
        self.mlp = GlmMlp(config)

    def forward(self, hidden: Tensor, attention_mask: Tensor) -> Tensor:
        """(rows, L, hidden)."""
        hidden = hidden + self.attention(self.input_layernorm(hidden), attention_mask)
        output: Tensor = hidden + self.mlp(self.post_attention_layernorm(hidden))
        return output


class GlmModel(nn.Module):
    """Embeddings of places, layers, final normalisation."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        places = config.max_position_embeddings + 1
        self.position_embeddings = nn.Embedding(places, config.hidden_size)
        self.block_position_embeddings = nn.Embedding(places, config.hidden_size)
        self.layers = nn.ModuleList(GlmLayer(config) for _ in range(config.num_layers))
        self.final_layernorm = nn.LayerNorm(config.hidden_size, config.layernorm_epsilon)

    def forward(self, words: Tensor, position_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """(rows, L, hidden); `position_ids` (rows, 2, L) are places and places in the block."""
        hidden = words + self.position_embeddings(position_ids[:, 0])
        hidden = hidden + self.block_position_embeddings(position_ids[:, 1])
        for layer in self.layers:
            hidden = layer(hidden, attention_mask)
        output: Tensor = self.final_layernorm(hidden)
        return output


class GlmForMultiTokenCloze(nn.Module):
    """Scores candidates; the output matrix is the word embedding."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(config.vocab_size, config.hidden_size)
        self.transformer = GlmModel(config)

    def forward(
        self,
        input_ids: Tensor,
        position_ids: Tensor,
        attention_mask: Tensor,
        logits_to_keep: int,
        target_places: Tensor,
        target_ids: Tensor,
        labels: Tensor,
    ) -> Output:
        """Scores (B, K), and their cross entropy, the mean over questions.

        `target_ids` (B, K, n) are the candidates' tokens, -100 in padding, and `target_places` (B, K, n) the
        places among the kept ones of all rows that say them; `labels` (B,) the right candidates.
        """
        hidden = self.transformer(self.word_embeddings(input_ids), position_ids, attention_mask)
        logits = F.linear(hidden[:, -logits_to_keep:], self.word_embeddings.weight).flatten(0, 1)
        of_tokens = logits.float().log_softmax(dim=-1)[target_places, target_ids.clamp_min(0)]
        is_target = target_ids >= 0
        scores = torch.where(is_target, of_tokens, 0.0).sum(dim=-1)
        scores = scores.masked_fill(~is_target.any(dim=-1), -torch.inf)
        return Output(F.cross_entropy(scores, labels), scores)


def row_a_candidate(questions: Sequence[Question], start: int, end: int) -> dict[str, Any]:
    """A batch of B * K rows; a question with fewer candidates has rows of its first one, which count for nothing."""
    most = max(len(question.candidates) for question in questions)
    rows = []
    for question in questions:
        filled = [*question.candidates, *[question.candidates[0]] * (most - len(question.candidates))]
        rows += [Question(question.source, question.blank, [candidate], 0) for candidate in filled]
    batch = row_a_question(rows, start, end)
    count, longest = len(questions), batch["target_ids"].shape[-1]
    is_real = torch.tensor(
        [[number < len(question.candidates) for number in range(most)] for question in questions]
    )
    targets = batch["target_ids"].view(count, most, longest).masked_fill(~is_real[..., None], -100)
    labels = torch.tensor([question.right for question in questions])
    places = batch["target_places"].view(count, most, longest)
    return {**batch, "target_ids": targets, "target_places": places, "labels": labels}


def row_a_question(questions: Sequence[Question], start: int, end: int) -> dict[str, Any]:
    """A batch of B rows: sources padded to the longest, then starts and candidates padded to the longest."""
    count = len(questions)
    sources = max(len(question.source) for question in questions)
    answers = max(1 + sum(map(len, question.candidates)) for question in questions)
    most = max(len(question.candidates) for question in questions)
    longest = 1 + max(len(candidate) for question in questions for candidate in question.candidates)
    ids = np.zeros((count, sources + answers), dtype=np.int64)
    positions = np.zeros((count, 2, sources + answers), dtype=np.int64)
    sees = np.zeros((count, sources + answers, sources + answers), dtype=bool)
    target_ids = np.full((count, most, longest), -100)
    target_places = np.zeros((count, most, longest), dtype=np.int64)
    for row, question in enumerate(questions):
        length = len(question.source)
        ids[row, :length], positions[row, 0, :length] = question.source, np.arange(length)
        ids[row, sources] = start
        positions[row, 0, sources:], positions[row, 1, sources:] = question.blank, 1
        sees[row, :, :length] = True
        sees[row, sources:, sources] = True
        place = sources + 1
        for number, candidate in enumerate(question.candidates):
            after = place + len(candidate)
            ids[row, place:after] = candidate
            positions[row, 1, place:after] = 2 + np.arange(len(candidate))
            sees[row, place:after, place:after] = np.tri(len(candidate), dtype=bool)
            said_at = [0, *range(place - sources, after - sources)]
            target_ids[row, number, : len(said_at)] = [*candidate, end]
            target_places[row, number, : len(said_at)] = np.array(said_at) + row * answers
            place = after
    return {
        "input_ids": torch.from_numpy(ids),
        "position_ids": torch.from_numpy(positions),
        "attention_mask": torch.from_numpy(sees)[:, None],
        "logits_to_keep": answers,
        "target_places": torch.from_numpy(target_places),
        "target_ids": torch.from_numpy(target_ids),
        "labels": torch.tensor([question.right for question in questions]),
    }
