"""The embedding average on examples computed by hand, and the case's other figures."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.cpm.pytorch.metric import embedding_average_sums
from tests.benchmarks.cpm.chunk_data import (
    LENGTHS,
    TINY,
    inputs_of,
    loader,
    make_case,
    our_model,
    random_chunks,
    their_model,
    write_set,
)
from utils.parameters import TrainingSettings

# Tokens 0 and 1 are at right angles, 2 lies between them, 3 is the opposite of 0, 4 has no length.
EMBEDDING = torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0], [-1.0, 0.0], [0.0, 0.0]])


@pytest.mark.parametrize(
    ("predicted", "right", "score"),
    [
        ([0, 1], [0, 1], 1.0),
        ([1, 0], [0, 1], 1.0),  # the order plays no part
        ([0], [1], 0.0),
        ([0], [2], 1 / math.sqrt(2)),  # (1,0).(3,3) / (1 * sqrt 18)
        ([0], [3], -1.0),
        (
            [0, 0, 1],
            [0, 1, 1],
            (2 * 1 + 2 * 4) / (math.sqrt(8) * math.sqrt(17)),
        ),  # (2,2).(1,4): each time counts
        ([0, 3], [0, 0], 0.0),  # the predicted embeddings add up to nothing
    ],
)
def test_the_score_of_one_sample(predicted: list[int], right: list[int], score: float) -> None:
    offsets = torch.tensor([0, len(right)])
    sums = embedding_average_sums(torch.tensor(predicted), torch.tensor(right), offsets, EMBEDDING)
    assert sums.tolist() == pytest.approx([score, 1])


def test_samples_count_alike_whatever_their_length_and_those_without_embedding_are_left_out() -> None:
    predicted = torch.tensor([0, 0, 0, 1, 1, 0])
    right = torch.tensor([0, 0, 0, 0, 4, 2])
    offsets = torch.tensor([0, 3, 4, 5, 6])  # scores 1, 0, left out (only token 4), 1/sqrt 2
    sums = embedding_average_sums(predicted, right, offsets, EMBEDDING)
    assert sums.tolist() == pytest.approx([1 + 1 / math.sqrt(2), 3])


def plain_score(predicted: list[int], right: list[int], embedding: np.ndarray) -> float:
    """The formula once more, sample by sample in numpy."""
    x, y = embedding[predicted].sum(0), embedding[right].sum(0)
    return float(x @ y / np.linalg.norm(x) / np.linalg.norm(y))


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    write_set(tmp_path, "valid", random_chunks(seed=1), random_chunks((4, 5, 13, 2, 2), seed=2))
    write_set(tmp_path, "train", random_chunks(seed=3))
    return tmp_path


def evaluated(data_dir: Path, *, world_size: int, batch: int) -> list[float]:
    """The sums over all ranks, each rank with its part."""
    model = our_model(their_model()).eval()
    total = torch.zeros(7, dtype=torch.float64)
    for rank in range(world_size):
        case = make_case(data_dir, TrainingSettings(eval_batch_size=batch, max_steps=1))
        for one in loader(case, rank, world_size).evaluation_batches():
            total += case.evaluate(model, one.inputs)
    return total.tolist()


def test_the_metrics_are_those_of_the_formulas(data_dir: Path) -> None:
    sums = evaluated(data_dir, world_size=1, batch=4)
    case = make_case(data_dir, TrainingSettings(max_steps=1))
    assert case.baseline() is None
    metrics = case.metrics(sums)
    chunks = [row[row >= 0] for path in sorted((data_dir / "valid").iterdir()) for row in np.load(path)]
    model = their_model()
    embedding = model.transformer.wte.weight.detach().numpy().astype(np.float64)
    labels = np.concatenate([chunk[1:] for chunk in chunks])
    commonest = int(np.bincount(labels).argmax())
    scores, baselines, right, loss = [], [], 0, 0.0
    for chunk in chunks:
        logits = model(torch.from_numpy(chunk[:-1]).long()[None]).logits[0].detach().double()
        predicted = logits.argmax(-1).tolist()
        scores.append(plain_score(predicted, chunk[1:].tolist(), embedding))
        baselines.append(plain_score([commonest], chunk[1:].tolist(), embedding))
        right += int((np.array(predicted) == chunk[1:]).sum())
        loss -= float(
            logits.log_softmax(-1)[torch.arange(len(predicted)), torch.from_numpy(chunk[1:]).long()].sum()
        )
    expected = {
        "embedding_average": np.mean(scores),
        "baseline_embedding_average": np.mean(baselines),
        "token_accuracy": right / len(labels),
        "eval_loss": loss / len(labels),
        "perplexity": math.exp(loss / len(labels)),
    }
    assert metrics == pytest.approx(expected, rel=1e-4)
    assert case.baseline() == metrics["baseline_embedding_average"]


class _Answers:
    """FAKE, in the model's place: known answers and a known loss, with the embedding above."""

    word_embeddings = torch.nn.Embedding.from_pretrained(EMBEDDING)

    def predict(self, inputs: Any) -> tuple[torch.Tensor, torch.Tensor]:
        assert inputs.labels.tolist() == [0, 1, 2, 0]
        return torch.tensor([0, 0, 2, 1]), torch.tensor(4 * math.log(8))


def test_the_metrics_of_four_labels_and_two_samples(tmp_path: Path) -> None:
    """Samples of three labels and of one; two answers are right; a loss of ln 8 a label."""
    case = make_case(tmp_path, TrainingSettings(max_steps=1))
    sums = case.evaluate(_Answers(), inputs_of(np.array([[3, 0, 1, 2], [3, 0, -1, -1]], np.int32)))  # type: ignore[arg-type]
    # predicted (5,3) . right (4,5); then (0,2) . (1,0). Always token 0: (3,0) . (4,5); then (1,0) . (1,0).
    first, constant = 35 / math.sqrt(34 * 41), 12 / (3 * math.sqrt(41))
    assert case.metrics(sums.tolist()) == pytest.approx(
        {
            "embedding_average": (first + 0) / 2,
            "baseline_embedding_average": (constant + 1) / 2,
            "token_accuracy": 2 / 4,
            "eval_loss": math.log(8),
            "perplexity": 8.0,
        }
    )


@pytest.mark.parametrize("world_size", [2, 3, 16])
@pytest.mark.parametrize("batch", [1, 4, 64])
def test_the_evaluation_is_the_same_whatever_the_world_size(
    data_dir: Path, world_size: int, batch: int
) -> None:
    """Eleven samples: no world size but 1 divides them, and of 16 ranks five have none."""
    alone = evaluated(data_dir, world_size=1, batch=64)
    assert evaluated(data_dir, world_size=world_size, batch=batch) == pytest.approx(alone, rel=1e-5)
    assert alone[1] == len(LENGTHS) + 5
    assert alone[6] == sum(LENGTHS) - len(LENGTHS) + (4 + 5 + 13 + 2 + 2) - 5


def test_a_perplexity_beyond_numbers_does_not_end_the_run(data_dir: Path) -> None:
    case = make_case(data_dir, TrainingSettings(max_steps=1))
    assert math.isfinite(case.metrics([1, 1, 1, 1, 0, 1e9, 1])["perplexity"])


def test_settings_are_the_models(data_dir: Path) -> None:
    config = make_case(data_dir, TrainingSettings(max_steps=1)).model_config
    assert (config.num_layers, config.vocab_size) == (TINY["num_layers"], TINY["vocab_size"])
