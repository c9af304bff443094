"""From questions as arrays to the tensors that the model takes."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from benchmarks.glm.clozes import Array, Clozes, starts, within

from .layout import Layout, Part
from .model import GlmInputs


def make_inputs(clozes: Clozes, *, start: int, end: int, ragged: bool) -> GlmInputs:
    """Lay out a batch.

    Args:
        clozes: its questions.
        start: id of the token that begins an answer.
        end: id of the token that ends it.
        ragged: attention takes the sources as they are, without padding (GPU).
    """
    count, most = len(clozes), int(clozes.candidate_counts.max())
    question_of, lengths = clozes.question_of, clozes.answer_lengths
    places = question_of * most + within(clozes.candidate_counts)
    ids, targets = _answers(clozes.candidates, lengths, start, end)
    blanks = np.repeat(clozes.blanks[question_of], lengths)
    earned = np.zeros((2, count * most), dtype=np.float32)
    earned[:, places] = clozes.exact_match, clozes.f1
    return GlmInputs(
        input_ids=_int32(clozes.sources, ids),
        position_ids=_int32(within(clozes.source_lengths), blanks),
        block_position_ids=_int32(np.zeros(len(clozes.sources)), within(lengths) + 1),
        layout=_layout(clozes, ragged),
        targets=torch.from_numpy(targets),
        candidate_of=torch.from_numpy(np.repeat(places, lengths)),
        most_candidates=most,
        candidate_places=torch.from_numpy(places),
        labels=torch.from_numpy(earned[0].reshape(count, most).argmax(axis=1)),
        exact_match=torch.from_numpy(earned[0].reshape(count, most)),
        f1=torch.from_numpy(earned[1].reshape(count, most)),
    )


def _answers(candidates: Array, lengths: Array, start: int, end: int) -> tuple[Array, Array]:
    """What the model reads of all candidates, and what it shall say: `start a b`, `a b end`."""
    ids = np.full(int(lengths.sum()), start, dtype=np.int64)
    ids[within(lengths) > 0] = candidates
    targets = np.append(ids[1:], end)
    targets[starts(lengths)[1:] - 1] = end
    return ids, targets


def _layout(clozes: Clozes, ragged: bool) -> Layout:
    sources = clozes.source_lengths.astype(np.int64)
    answers = np.add.reduceat(clozes.answer_lengths, starts(clozes.candidate_counts))
    source, answer = _part(sources), _part(answers)
    is_padding = np.arange(source.longest) >= sources[:, None]
    offsets = torch.from_numpy(np.append(0, np.cumsum(sources))) if ragged else None
    return Layout(
        questions=len(clozes),
        source=source,
        answers=answer,
        source_bias=_bias(~is_padding[:, None]) if is_padding.any() and not ragged else None,
        answer_bias=_bias(_seen_by_answers(clozes, is_padding, answer)),
        offsets=offsets,
    )


def _part(lengths: Array) -> Part:
    longest, rows = int(lengths.max()), int(lengths.sum())
    if rows == longest * len(lengths):
        return Part(rows, longest, None)
    places = np.repeat(np.arange(len(lengths)) * longest, lengths) + within(lengths)
    return Part(rows, longest, torch.from_numpy(places))


def _seen_by_answers(clozes: Clozes, is_padding: Array, part: Part) -> Array:
    """(B, A, S + A): the source, and the tokens of the same candidate up to the token itself."""
    count, longest = len(clozes), part.longest
    candidate = np.full(count * longest, -1)
    rows = slice(None) if part.places is None else part.places.numpy()
    candidate[rows] = np.repeat(np.arange(len(clozes.candidate_lengths)), clozes.answer_lengths)
    candidate = candidate.reshape(count, longest)
    same = candidate[:, :, None] == candidate[:, None, :]  # padding sees itself: a softmax needs something
    own = same & np.tri(longest, dtype=bool)
    source = np.broadcast_to(~is_padding[:, None], (count, longest, is_padding.shape[1]))
    return np.concatenate([source, own], axis=2)


def _bias(is_seen: Array) -> Tensor:
    """(B, 1, queries, keys): 0 where a key is seen, -inf elsewhere."""
    seen = torch.from_numpy(is_seen)
    return torch.zeros(seen.shape).masked_fill(~seen, -torch.inf)[:, None]


def _int32(*parts: Array) -> Tensor:
    return torch.from_numpy(np.concatenate(parts).astype(np.int32))
