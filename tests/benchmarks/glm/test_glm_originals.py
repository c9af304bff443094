"""Golden figures of FlagPerf's and THUDM's GLM code (golden.json, with where they come from): model and questions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.common.arrays import Array
from benchmarks.common.wordpiece import Vocabulary
from benchmarks.glm.prepare.parameters import Parameters
from benchmarks.glm.prepare.questions import Question, QuestionMaker, as_clozes, vocabulary_of
from benchmarks.glm.prepare.record import parse
from benchmarks.glm.pytorch.inputs import make_inputs
from benchmarks.glm.pytorch.model import GlmConfig, GlmForMultiTokenCloze, GlmInputs, cloze_loss_sum
from tests.benchmarks.common.formulas import gradient_figures, set_by_formula
from tests.benchmarks.glm import golden_data as data
from tests.benchmarks.glm.cloze_data import inputs_of

GOLDEN: dict[str, Any] = json.loads(Path(__file__).with_name("golden.json").read_text(encoding="utf-8"))
WORDPIECE = Vocabulary(data.VOCABULARY)
MODES = pytest.mark.parametrize("mode", ["train", "dev"])
ROWS = ("ids", "positions", "blocks", "targets")
TOO_LONG = len(data.record_lines()) - 1  # the passage that does not fit


def test_scores_loss_and_gradients_are_the_originals() -> None:
    model = GlmForMultiTokenCloze(GlmConfig(**data.SHAPE, hidden_dropout=0.0, attention_dropout=0.0))
    set_by_formula(model)
    questions, golden = data.questions(), GOLDEN["model"]
    inputs = inputs_of(questions)
    scores = model(inputs)
    for row, expected in zip(scores, golden["scores"], strict=True):
        torch.testing.assert_close(row[: len(expected)], torch.tensor(expected), rtol=1e-5, atol=1e-4)
    loss = cloze_loss_sum(scores, inputs)[0] / len(questions)
    assert loss.item() == pytest.approx(golden["loss"], rel=1e-5)
    loss.backward()
    figures = gradient_figures(model)
    assert figures.keys() == golden["gradients"].keys()
    for name, values in figures.items():
        # a key's bias shifts all scores of a query alike: its gradient is 0 but for rounding
        assert values == pytest.approx(golden["gradients"][name], rel=1e-3, abs=2e-5), name


@MODES
def test_a_passage_gives_the_originals_questions(mode: str) -> None:
    """Each right answer by itself in training, all together in evaluation, and the originals' candidates."""
    ours = [(set(question.candidates), set(question.answers)) for question in made(mode)]
    originals = [(set(golden["candidates"]), set(golden["answers"])) for golden in in_order(mode)]
    left_out = [theirs - own for (own, _), (theirs, _) in zip(ours, originals, strict=True)]
    # another case of a right answer is right by ReCoRD's metric, so that ours is no wrong candidate in training
    expected = {"SAN JOS\u00c9"} if mode == "train" else set()
    assert set().union(*left_out) == expected
    assert all(own <= theirs for (own, _), (theirs, _) in zip(ours, originals, strict=True))
    assert [answers for _, answers in ours] == [answers for _, answers in originals]


@MODES
def test_tokens_positions_masks_and_targets_are_the_originals(mode: str) -> None:
    for question, golden in zip(made(mode), in_order(mode), strict=True):
        sequences, longest = our_sequences(question), max(map(len, question.tokens))
        for text, tokens in zip(question.candidates, question.tokens, strict=True):
            theirs = {name: numbers(golden["candidates"][text][name]) for name in ROWS}
            if golden["passage"] != TOO_LONG or len(tokens) == longest:
                assert sequences[text] == theirs, text
                continue
            # cut for the longest candidate, for all alike; theirs for each by itself
            spare, ids = longest - len(tokens), theirs["ids"]
            cut = [ids[:begin] + ids[begin + spare :] for begin in range(len(ids))]
            assert sequences[text]["ids"] in cut, text
            answer = len(question.source)
            assert sequences[text]["blocks"][answer:] == theirs["blocks"][answer + spare :]
            assert sequences[text]["targets"][answer:] == theirs["targets"][answer + spare :]


def made(mode: str) -> list[Question]:
    """Our questions of the lines."""
    parameters = Parameters(seq_length=data.LONGEST_RECORD)
    maker = QuestionMaker(WORDPIECE, parameters, is_training=mode == "train")
    lines = data.record_lines()
    return list(maker.of([parse(line.encode(), f"line {number}") for number, line in enumerate(lines)]))


def in_order(mode: str) -> list[dict[str, Any]]:
    """Theirs in our order: the answers of a query come from a set, in no order."""
    golden = GOLDEN["record"][mode]
    return sorted(golden, key=lambda one: (one["passage"], one["question"], one["answers"]))


def our_sequences(question: Question) -> dict[str, dict[str, list[int]]]:
    """Of each candidate the sequence that the model's inputs stand for: the source, a start, and its own tokens."""
    vocabulary = vocabulary_of(WORDPIECE)
    inputs = make_inputs(as_clozes([question]), start=vocabulary.start, end=vocabulary.end, ragged=False)
    length, sequences = len(question.source), {}
    first = length + 1
    for number, (text, tokens) in enumerate(zip(question.candidates, question.tokens, strict=True)):
        rows = np.r_[0 : length + 1, first : first + len(tokens)]
        is_own = inputs.candidate_of == number
        assert (inputs.target_rows[is_own] + length).tolist() == rows[length:].tolist()
        assert_seen_is(inputs, rows, length)
        sequences[text] = {
            "ids": inputs.input_ids[rows].tolist(),
            "positions": inputs.position_ids[rows].tolist(),
            "blocks": inputs.block_position_ids[rows].tolist(),
            "targets": [0] * length + inputs.targets[is_own].tolist(),
        }
        first += len(tokens)
    return sequences


def assert_seen_is(inputs: GlmInputs, rows: Array, source: int) -> None:
    """The originals' mask, a number: everybody sees so many tokens, and later ones see what is before them too."""
    everything = len(inputs.input_ids)
    identity, flat = torch.eye(everything)[:, None, :], torch.zeros(everything, 1, everything)
    seen = inputs.layout.attend(flat, flat, identity, 0.0)[:, 0][rows][:, rows] > 0
    places = torch.arange(len(rows))
    expected = (places < source) | (places <= places[:, None])
    assert (seen == expected).all()


def numbers(text: str) -> list[int]:
    return [int(number) for number in text.split()]
