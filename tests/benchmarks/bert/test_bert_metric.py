"""BERT's metrics and evaluation loss on an example computed by hand, on both frameworks."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import paddle
import pytest
import torch

from benchmarks.bert.arrays import pretraining_arrays
from benchmarks.bert.paddle.case import Case as PaddleCase
from benchmarks.bert.pytorch.case import Case as TorchCase
from benchmarks.driver.paddle.case import Context as PaddleContext
from benchmarks.driver.pytorch.case import Context as TorchContext
from tests.benchmarks.bert.shard_files import TINY_MODEL, VOCABULARY
from utils.parameters import TrainingSettings

# Two samples: labels 5 and 7 in the first, 6 in the second.
ROWS = {
    "input_ids": np.array([[1, 9, 8, 2], [1, 7, 2, 0]], "i4"),
    "input_mask": np.array([[1, 1, 1, 1], [1, 1, 1, 0]], "i1"),
    "segment_ids": np.zeros((2, 4), "i1"),
    "masked_lm_positions": np.array([[1, 2], [1, 0]], "i4"),
    "masked_lm_ids": np.array([[5, 7], [6, 0]], "i4"),
    "next_sentence_labels": np.array([0, 1], "i1"),
}
ANSWERS = [5, 9, 6]  # the second is wrong
# ln 59 for the answer and 0 for the 59 others: the answer has the probability 1/2, each other 1/118.
TOKEN_LOGITS = np.zeros((3, VOCABULARY), "f4")
TOKEN_LOGITS[np.arange(3), ANSWERS] = math.log(VOCABULARY - 1)
# "It follows", by 3 to 1, both times: right, then wrong.
PAIR_LOGITS = np.array([[math.log(3), 0.0]] * 2, "f4")


def _sums_of_torch(data_dir: Path) -> tuple[Any, list[float]]:
    driver = TrainingSettings(max_steps=1)
    case = TorchCase(TorchContext(data_dir, driver, TINY_MODEL, torch.device("cpu")))
    logits = torch.from_numpy(TOKEN_LOGITS), torch.from_numpy(PAIR_LOGITS)
    inputs = case.inputs(pretraining_arrays(ROWS))
    return case, case.evaluate(lambda _: logits, inputs).tolist()  # type: ignore[arg-type]


def _sums_of_paddle(data_dir: Path) -> tuple[Any, list[float]]:
    case = PaddleCase(PaddleContext(data_dir, TrainingSettings(max_steps=1), TINY_MODEL, "cpu"))
    logits = paddle.to_tensor(TOKEN_LOGITS), paddle.to_tensor(PAIR_LOGITS)
    inputs = case.inputs(pretraining_arrays(ROWS))
    return case, case.evaluate(lambda _: logits, inputs).tolist()  # type: ignore[arg-type]


@pytest.mark.parametrize("sums_of", [_sums_of_torch, _sums_of_paddle], ids=["pytorch", "paddle"])
def test_the_metrics_of_three_labels_and_two_samples(tmp_path: Path, sums_of: Any) -> None:
    case, sums = sums_of(tmp_path)
    of_tokens, of_samples = 2 * math.log(2) + math.log(118), math.log(4 / 3) + math.log(4)
    assert sums == pytest.approx([2, 3, 1, 2, of_tokens, of_samples])
    assert case.metrics(sums) == pytest.approx(
        {"mlm_accuracy": 2 / 3, "nsp_accuracy": 1 / 2, "eval_loss": of_tokens / 3 + of_samples / 2}
    )
