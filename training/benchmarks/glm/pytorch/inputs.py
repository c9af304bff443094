"""From questions as arrays to the tensors that the model takes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from benchmarks.common.arrays import Array, starts, within
from benchmarks.common.pytorch.attention import Ragged, Rectangle, bias_of, offsets_of
from benchmarks.glm.clozes import Clozes

from .layout import Layout
from .model import GlmInputs

_START, _PADDING = -1, -2  # in place of a candidate's number


def make_inputs(clozes: Clozes, *, start: int, end: int, ragged: bool) -> GlmInputs:
    """Lay out a batch.

    Args:
        clozes: its questions.
        start: id of the token that begins an answer.
        end: id of the token that ends it.
        ragged: attention takes the sources as they are, without padding (GPU).
    """
    count, most = len(clozes), int(clozes.candidate_counts.max())
    answers = _answer_rows(clozes)
    places = clozes.question_of * most + within(clozes.candidate_counts)
    earned = np.zeros((2, count * most), dtype=np.float32)
    earned[:, places] = clozes.exact_match, clozes.f1
    return GlmInputs(
        input_ids=_int32(clozes.sources, answers.of_tokens(clozes.candidates, start)),
        position_ids=_int32(within(clozes.source_lengths), np.repeat(clozes.blanks, clozes.answer_rows)),
        block_position_ids=_int32(np.zeros(len(clozes.sources)), 1 + answers.of_tokens(answers.place + 1, 0)),
        layout=_layout(clozes, answers, ragged),
        target_rows=torch.from_numpy(answers.target_rows),
        targets=torch.from_numpy(answers.targets(clozes.candidates, end)),
        candidate_of=torch.from_numpy(np.repeat(places, clozes.candidate_lengths + 1)),
        most_candidates=most,
        candidate_places=torch.from_numpy(places),
        labels=torch.from_numpy(earned[0].reshape(count, most).argmax(axis=1)),
        exact_match=torch.from_numpy(earned[0].reshape(count, most)),
        f1=torch.from_numpy(earned[1].reshape(count, most)),
    )


@dataclass(frozen=True)
class _Answers:
    """The rows of all candidates, question after question: a start token, then each candidate's tokens.

    Attributes:
        rows: how many there are.
        token_rows: (tokens of all candidates,) which row each has.
        place: (tokens of all candidates,) 0, 1, ... within its candidate.
        target_rows: (targets,) the row that says each target: of each candidate the start, then its tokens.
        lengths: (C,) tokens of each candidate.
    """

    rows: int
    token_rows: Array
    place: Array
    target_rows: Array
    lengths: Array

    def of_tokens(self, values: Array, of_start: int) -> Array:
        """(rows,) `values` of the candidates' tokens, and `of_start` of every start token."""
        filled = np.full(self.rows, of_start, dtype=np.int64)
        filled[self.token_rows] = values
        return filled

    def targets(self, tokens: Array, end: int) -> Array:
        """(targets,) each candidate's tokens, then `end`."""
        targets = np.full(len(self.target_rows), end, dtype=np.int64)
        targets[within(self.lengths + 1) < np.repeat(self.lengths, self.lengths + 1)] = tokens
        return targets


def _answer_rows(clozes: Clozes) -> _Answers:
    lengths, question = clozes.candidate_lengths.astype(np.int64), clozes.question_of
    token_rows = (
        np.arange(int(lengths.sum())) + np.repeat(question, lengths) + 1
    )  # a start before each question's
    target_rows = np.repeat(starts(clozes.answer_rows)[question], lengths + 1)
    target_rows[within(lengths + 1) > 0] = token_rows
    return _Answers(int(clozes.answer_rows.sum()), token_rows, within(lengths), target_rows, lengths)


def _layout(clozes: Clozes, answers: _Answers, ragged: bool) -> Layout:
    sources = clozes.source_lengths.astype(np.int64)
    source, answer = Rectangle.of(sources), Rectangle.of(clozes.answer_rows)
    is_padding = np.arange(source.longest) >= sources[:, None]
    return Layout(
        source=source,
        answers=answer,
        source_bias=bias_of(~is_padding[:, None, None]) if is_padding.any() and not ragged else None,
        answer_bias=bias_of(_seen_by_answers(answers, is_padding, answer)[:, None]),
        ragged=Ragged(offsets_of(sources), source.longest) if ragged else None,
    )


def _seen_by_answers(answers: _Answers, is_padding: Array, part: Rectangle) -> Array:
    """(B, A, S + A): the source, the start, and the tokens of the same candidate up to the token itself."""
    count, longest = len(is_padding), part.longest
    rows = slice(None) if part.places is None else part.places.numpy()
    line = np.full(count * longest, _PADDING)
    line[rows] = answers.of_tokens(np.repeat(np.arange(len(answers.lengths)), answers.lengths), _START)
    candidate = line.reshape(count, longest)
    same = candidate[:, :, None] == candidate[:, None, :]  # padding sees itself: a softmax needs something
    own = (same | (candidate == _START)[:, None, :]) & np.tri(longest, dtype=bool)
    source = np.broadcast_to(~is_padding[:, None], (count, longest, is_padding.shape[1]))
    return np.concatenate([source, own], axis=2)


def _int32(*parts: Array) -> Tensor:
    return torch.from_numpy(np.concatenate(parts).astype(np.int32))
