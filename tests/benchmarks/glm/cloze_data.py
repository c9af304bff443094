"""Small questions and models for the tests of GLM, in the plain form and in the case's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.driver.loader import Loader
from benchmarks.driver.pytorch.case import Context
from benchmarks.glm import shards
from benchmarks.glm.clozes import Clozes
from benchmarks.glm.pytorch.case import Case
from benchmarks.glm.pytorch.inputs import make_inputs
from benchmarks.glm.pytorch.model import GlmConfig, GlmForMultiTokenCloze, GlmInputs
from tests.benchmarks.glm.plain import END, MASK, START, PlainGlm, Question
from utils.parameters import TrainingSettings

VOCABULARY = shards.Vocabulary(size=62, start=START, end=END)
TINY: dict[str, Any] = {
    "vocab_size": 64,
    "hidden_size": 16,
    "num_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 24,
}


def random_questions(
    count: int, *, seed: int, source: int | None = None, answer: int | None = None
) -> list[Question]:
    """Questions with 5 to 14 tokens of source and 2 to 5 candidates of 1 to 4 tokens; or all of the lengths given."""
    generator = np.random.default_rng(seed)

    def tokens(number: int) -> list[int]:
        return [int(token) for token in generator.integers(5, 60, number)]

    questions = []
    for _ in range(count):
        length = source or int(generator.integers(5, 15))
        blank = int(generator.integers(1, length - 1))
        text = tokens(length)
        text[blank] = MASK
        candidates = [
            tokens(answer or int(generator.integers(1, 5)))
            for _ in range(3 if answer else generator.integers(2, 6))
        ]
        questions.append(Question(text, candidates, int(generator.integers(len(candidates)))))
    return questions


def as_clozes(questions: Sequence[Question]) -> Clozes:
    """The same questions as the case's arrays; the first candidate stands twice in the passage, others once."""
    candidates = [candidate for question in questions for candidate in question.candidates]
    right = [place == question.right for question in questions for place in range(len(question.candidates))]
    first = [place == 0 for question in questions for place in range(len(question.candidates))]
    return Clozes(
        sources=np.concatenate([np.array(question.source) for question in questions]),
        source_lengths=np.array([len(question.source) for question in questions]),
        blanks=np.array([question.source.index(MASK) for question in questions]),
        candidate_counts=np.array([len(question.candidates) for question in questions]),
        candidates=np.concatenate([np.array(candidate) for candidate in candidates]),
        candidate_lengths=np.array([len(candidate) for candidate in candidates]),
        exact_match=np.array(right, np.int8),
        f1=np.array(right, np.float32),
        mentions=np.array(first, np.int64) + 1,
        in_query=np.zeros(len(candidates), np.int8),
    )


def inputs_of(questions: Sequence[Question], *, ragged: bool = False) -> GlmInputs:
    return make_inputs(as_clozes(questions), start=START, end=END, ragged=ragged)


def our_model(**changed: Any) -> GlmForMultiTokenCloze:
    """The tiny model without dropout; biases and normalisation not 0 and 1, or errors there would not be seen."""
    torch.manual_seed(3)
    shape = {**TINY, "hidden_dropout": 0.0, "attention_dropout": 0.0, "initializer_range": 0.3}
    model = GlmForMultiTokenCloze(GlmConfig(**{**shape, **changed}))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def plain_model(ours: GlmForMultiTokenCloze) -> PlainGlm:
    """The plain form with the weights of `ours`."""
    return PlainGlm(ours.state_dict(), layers=TINY["num_layers"], heads=TINY["num_attention_heads"])


def write_set(data_dir: Path, folder: str, *files: Clozes) -> None:
    """A training or evaluation set of these files."""
    (data_dir / folder).mkdir(parents=True, exist_ok=True)
    for number, clozes in enumerate(files):
        shards.write(data_dir / shards.shard_name(folder, number, len(files)), clozes, VOCABULARY)


def make_case(data_dir: Path, driver: TrainingSettings, **settings: Any) -> Case:
    """The case of a tiny model on the CPU."""
    values = {**TINY, "hidden_dropout": 0.0, "attention_dropout": 0.0, **settings}
    return Case(Context(data_dir, driver, values, torch.device("cpu")))


def loader(case: Case, rank: int = 0, world_size: int = 1) -> Loader:
    """What makes a rank's batches of the case's data."""
    return Loader(case, case.context.driver, rank, world_size)
