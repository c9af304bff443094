"""GLM's multi-token cloze as the paper and GLM's released code define it: plain, slow, written apart.

Each candidate is a sequence of its own, source and answer, padded to the longest of the batch. A mask says
for each pair of positions whether one sees the other; logits are made everywhere. Parameters have the names
of GLM's released code.

    sequence        [CLS] passage query [MASK] query [PAD] | sop a_1 ... a_n
    position        0 1 2 ...                              | place of [MASK], for all
    block position  0 0 0 ...                              | 1 2 ... n + 1
    target                                                 | a_1 ... a_n eop
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

MASK, START, END = 4, 60, 61


@dataclass(frozen=True)
class Question:
    """`source` holds MASK once; `candidates` are token lists; `right` is the index of the right one."""

    source: list[int]
    candidates: list[list[int]]
    right: int


@dataclass(frozen=True)
class PlainBatch:
    """B questions x K candidates x L tokens; `mask` (B * K, L, L) is 1 where a row's token sees a column's."""

    ids: Tensor
    positions: Tensor
    block_positions: Tensor
    mask: Tensor
    targets: Tensor
    is_target: Tensor
    is_candidate: Tensor
    right: Tensor


def plain_batch(
    questions: Sequence[Question], start: int = START, end: int = END, mask: int = MASK
) -> PlainBatch:
    """Every candidate padded to the longest, every question to the most candidates (with its first one)."""
    most = max(len(question.candidates) for question in questions)
    rows = []
    for question in questions:
        filled = question.candidates + [question.candidates[0]] * (most - len(question.candidates))
        rows += [_row(question.source, candidate, start, end, mask) for candidate in filled]
    longest = max(len(row[0]) for row in rows)
    ids, positions, blocks, targets = (
        torch.tensor([row[part] + [0] * (longest - len(row[part])) for row in rows]) for part in range(4)
    )
    lengths = torch.tensor([len(row[0]) for row in rows])
    sources = torch.tensor([len(question.source) for question in questions]).repeat_interleave(most)
    places = torch.arange(longest)
    counts = torch.tensor([len(question.candidates) for question in questions])
    return PlainBatch(
        ids=ids,
        positions=positions,
        block_positions=blocks,
        mask=torch.stack([_sees(int(source), longest) for source in sources]),
        targets=targets,
        is_target=((places >= sources[:, None]) & (places < lengths[:, None])).float(),
        is_candidate=torch.arange(most) < counts[:, None],
        right=torch.tensor([question.right for question in questions]),
    )


def _row(source: list[int], candidate: list[int], start: int, end: int, mask: int) -> list[list[int]]:
    blank, answer = source.index(mask), [start, *candidate]
    return [
        source + answer,
        list(range(len(source))) + [blank] * len(answer),
        [0] * len(source) + list(range(1, len(answer) + 1)),
        [0] * len(source) + [*candidate, end],
    ]


def _sees(source: int, length: int) -> Tensor:
    """(length, length): everybody sees the source; beyond it a token sees itself and what is before."""
    seen = torch.zeros(length, length)
    for row in range(length):
        for column in range(length):
            seen[row, column] = float(column < source or column <= row)
    return seen


class PlainGlm(nn.Module):
    """GLM's forward pass on named tensors (a state dict of GLM's layout), no dropout."""

    def __init__(self, weights: Mapping[str, Tensor], layers: int, heads: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.layers, self.heads, self.epsilon = layers, heads, epsilon
        self.names = list(weights)
        self.tensors = nn.ParameterList(
            [nn.Parameter(tensor.detach().clone()) for tensor in weights.values()]
        )

    def named(self) -> dict[str, nn.Parameter]:
        """The parameters by GLM's names."""
        return dict(zip(self.names, self.tensors, strict=True))

    def forward(self, batch: PlainBatch) -> Tensor:
        """(B, K) scores: log probability of each candidate's tokens and of the end; -10000 in padding (as GLM)."""
        weights = self.named()
        hidden = weights["word_embeddings.weight"][batch.ids]
        hidden = hidden + weights["transformer.position_embeddings.weight"][batch.positions]
        hidden = hidden + weights["transformer.block_position_embeddings.weight"][batch.block_positions]
        for number in range(self.layers):
            prefix = f"transformer.layers.{number}."
            layer = {name.removeprefix(prefix): t for name, t in weights.items() if name.startswith(prefix)}
            hidden = hidden + self._attention(self._norm(hidden, layer, "input_layernorm"), layer, batch.mask)
            hidden = hidden + _mlp(self._norm(hidden, layer, "post_attention_layernorm"), layer)
        hidden = self._norm(hidden, weights, "transformer.final_layernorm")
        logits = hidden @ weights["word_embeddings.weight"].T
        of_tokens = logits.float().log_softmax(-1).gather(2, batch.targets[..., None])[..., 0]
        scores = (of_tokens * batch.is_target).sum(1).view(batch.is_candidate.shape)
        return torch.where(batch.is_candidate, scores, -10000.0)

    def loss(self, batch: PlainBatch) -> Tensor:
        """Cross entropy over each question's candidates, the mean over questions."""
        return nn.functional.cross_entropy(self(batch), batch.right)

    def _norm(self, hidden: Tensor, weights: Mapping[str, Tensor], name: str) -> Tensor:
        size = (hidden.shape[-1],)
        weight, bias = weights[f"{name}.weight"], weights[f"{name}.bias"]
        return nn.functional.layer_norm(hidden, size, weight, bias, self.epsilon)

    def _attention(self, hidden: Tensor, layer: Mapping[str, Tensor], mask: Tensor) -> Tensor:
        rows, length, size = hidden.shape
        product = (
            hidden @ layer["attention.query_key_value.weight"].T + layer["attention.query_key_value.bias"]
        )
        q, k, v = (
            part.view(rows, length, self.heads, -1).transpose(1, 2) for part in product.split(size, dim=-1)
        )
        scores = q @ k.transpose(-1, -2) / math.sqrt(size // self.heads)
        scores = scores * mask[:, None] - 10000.0 * (1.0 - mask[:, None])
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(rows, length, size)
        return mixed @ layer["attention.dense.weight"].T + layer["attention.dense.bias"]


def _mlp(hidden: Tensor, layer: Mapping[str, Tensor]) -> Tensor:
    wide = hidden @ layer["mlp.dense_h_to_4h.weight"].T + layer["mlp.dense_h_to_4h.bias"]
    wide = 0.5 * wide * (1.0 + torch.tanh(0.7978845608028654 * wide * (1.0 + 0.044715 * wide * wide)))
    return wide @ layer["mlp.dense_4h_to_h.weight"].T + layer["mlp.dense_4h_to_h.bias"]
