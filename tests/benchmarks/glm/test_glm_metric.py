"""Exact match and F1 by hand, the trivial answers, and the evaluation whatever the world size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.glm import baselines
from benchmarks.glm.clozes import Clozes
from benchmarks.glm.metric import exact_match, f1, normalised
from tests.benchmarks.glm.cloze_data import (
    as_clozes,
    loader,
    make_case,
    our_model,
    plain_model,
    random_questions,
    write_set,
)
from tests.benchmarks.glm.plain import plain_batch
from utils.parameters import TrainingSettings


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The  U.S.", "us"),
        ("An apple, a day", "apple day"),
        ("Theatre", "theatre"),
        ("a", ""),
        ("Côte d'Ivoire", "côte divoire"),
    ],
)
def test_normalisation_is_squads(text: str, expected: str) -> None:
    assert normalised(text) == expected


@pytest.mark.parametrize(
    ("chosen", "answers", "exact", "overlap"),
    [
        ("Barack Obama", ["Barack Obama"], 1, 1.0),
        ("barack obama.", ["Barack Obama"], 1, 1.0),
        ("the President", ["President"], 1, 1.0),
        ("Obama", ["Barack Obama"], 0, 2 / 3),  # precision 1, recall 1/2
        ("Obama", ["Barack Obama", "Obama"], 1, 1.0),  # any spelling of the entity counts
        ("Michelle Obama", ["Barack Obama", "Obama"], 0, 2 / 3),  # the best comparison: 1/2 and 2/3
        ("New York City", ["York City Hall"], 0, 2 / 3),
        ("Paris", ["London"], 0, 0.0),
        ("York York", ["York"], 0, 2 / 3),  # a word counts as often as both have it
    ],
)
def test_the_best_of_several_right_answers_counts(
    chosen: str, answers: list[str], exact: int, overlap: float
) -> None:
    assert exact_match(chosen, answers) == exact
    assert f1(chosen, answers) == pytest.approx(overlap)


def clozes_of(counts: list[int], right: list[int], mentions: list[int], in_query: list[int]) -> Clozes:
    """Questions of which only what the trivial answers look at matters."""
    rows = len(counts)
    return Clozes(
        sources=np.ones(3 * rows, np.int64),
        source_lengths=np.full(rows, 3),
        blanks=np.ones(rows, np.int64),
        candidate_counts=np.array(counts),
        candidates=np.ones(sum(counts), np.int64),
        candidate_lengths=np.ones(sum(counts), np.int64),
        exact_match=np.array(right),
        f1=np.array(right, np.float32),
        mentions=np.array(mentions),
        in_query=np.array(in_query),
    )


def test_trivial_answers_by_hand() -> None:
    """Three questions of 2, 4 and 3 candidates; the last has two right ones."""
    clozes = clozes_of(
        counts=[2, 4, 3],
        right=[0, 1, 0, 0, 1, 0, 1, 0, 1],
        mentions=[2, 1, 1, 3, 3, 1, 1, 1, 2],
        in_query=[1, 0, 0, 1, 0, 0, 1, 1, 1],
    )
    assert baselines.chance(clozes) == pytest.approx((1 / 2 + 1 / 4 + 2 / 3) / 3)
    assert baselines.most_mentioned(clozes) == pytest.approx(1 / 3)  # candidates 0, 1 (before 2) and 2
    assert baselines.most_mentioned_not_in_query(clozes) == pytest.approx(1)  # 1, 2, and 2 of all
    assert baselines.first_not_in_query(clozes) == pytest.approx(2 / 3)  # 1, 0, and 0 of all
    assert baselines.best_trivial_answer(clozes) == pytest.approx(1)


COUNT = 11  # divided by no world size but 1; of 16 ranks five have none


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    write_set(tmp_path, "val", *(as_clozes(random_questions(n, seed=n)) for n in (7, 4)))
    write_set(tmp_path, "train", as_clozes(random_questions(5, seed=1)))
    return tmp_path


def evaluated(data_dir: Path, *, world_size: int, batch: int) -> list[float]:
    """The sums over all ranks, each rank with its part."""
    model = our_model().eval()
    total = torch.zeros(4, dtype=torch.float64)
    for rank in range(world_size):
        case = make_case(data_dir, TrainingSettings(eval_batch_size=batch, max_steps=1))
        for one in loader(case, rank, world_size).evaluation_batches():
            total += case.evaluate(model, one.inputs)
    return total.tolist()


def test_the_metrics_are_those_of_the_plain_form(data_dir: Path) -> None:
    questions = [*random_questions(7, seed=7), *random_questions(4, seed=4)]
    case = make_case(data_dir, TrainingSettings(max_steps=1))
    metrics = case.metrics(evaluated(data_dir, world_size=1, batch=4))
    batch = plain_batch(questions)
    with torch.no_grad():
        scores = plain_model(our_model())(batch)
        loss = torch.nn.functional.cross_entropy(scores, batch.right).item()
    right = (scores.argmax(1) == batch.right).float().mean().item()
    assert metrics == pytest.approx({"exact_match": right, "f1": right, "eval_loss": loss}, rel=1e-4)
    assert case.baseline() == baselines.best_trivial_answer(as_clozes(questions))


@pytest.mark.parametrize("world_size", [2, 3, 16])
@pytest.mark.parametrize("batch", [1, 4, 64])
def test_the_evaluation_takes_each_question_once_whatever_the_world_size(
    data_dir: Path, world_size: int, batch: int
) -> None:
    alone = evaluated(data_dir, world_size=1, batch=64)
    assert evaluated(data_dir, world_size=world_size, batch=batch) == pytest.approx(alone, rel=1e-5)
    assert alone[2] == COUNT
