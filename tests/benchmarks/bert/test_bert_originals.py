"""BERT against what the originals gave, FlagPerf's on PyTorch and MLPerf's on TensorFlow: `golden_*.json`.

Each says in `provenance` which code gave the numbers; `make_golden_*.py` made them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from benchmarks.bert.names import transformers_name
from benchmarks.bert.paddle.case import Case as PaddleCase
from benchmarks.bert.pytorch.case import Case as PytorchCase
from benchmarks.bert.shards import EVALUATION_FILE
from benchmarks.driver.case import Context
from benchmarks.driver.pytorch.optimizers import make_optimizer
from benchmarks.driver.sampling import Samples
from benchmarks.driver.schedules import make_schedule
from tests.benchmarks.bert import golden_data as data
from tests.benchmarks.bert.golden_models import FRAMEWORKS, OnPytorch
from tests.benchmarks.bert.shard_files import write_shard
from utils.parameters import TrainingSettings

FLAGPERF, MLPERF = (
    json.loads(Path(__file__).with_name(f"golden_{name}.json").read_text(encoding="utf-8"))
    for name in ("flagperf", "mlperf")
)
CASES = {"pytorch": (PytorchCase, torch.device("cpu")), "paddle": (PaddleCase, "cpu")}
# single precision, sums in another order
CLOSE = {"rtol": 2e-5, "atol": 2e-6}


def log_softmax(logits: NDArray[Any]) -> NDArray[Any]:
    wide = logits.astype(np.float64)
    return np.asarray(wide - np.log(np.exp(wide).sum(axis=-1, keepdims=True)))


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("gelu", ["tanh", "erf"])
def test_logits_loss_and_gradients_are_flagperfs(framework: str, gelu: str) -> None:
    model = FRAMEWORKS[framework](gelu)
    masked, next_sentence = model.logits(data.rows(0))
    np.testing.assert_allclose(masked[:, data.COLUMNS], FLAGPERF[f"{gelu}_token_logits"], **CLOSE)
    np.testing.assert_allclose(next_sentence, FLAGPERF[f"{gelu}_next_sentence_logits"], **CLOSE)
    assert float(model.loss(data.rows(0)).detach()) == pytest.approx(FLAGPERF[f"{gelu}_loss"], rel=1e-6)
    assert_norms(model.gradient_norms(data.rows(0)), FLAGPERF[f"{gelu}_gradient_norms"])


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_probabilities_loss_and_gradients_are_mlperfs(framework: str) -> None:
    model = FRAMEWORKS[framework]("tanh")
    masked, next_sentence = map(log_softmax, model.logits(data.rows(0, data.EVALUATED)))
    np.testing.assert_allclose(masked[:20, data.COLUMNS], MLPERF["token_log_probabilities"], **CLOSE)
    np.testing.assert_allclose(next_sentence[:20], MLPERF["next_sentence_log_probabilities"], **CLOSE)
    # they add 1e-5 to the number of labels
    assert float(model.loss(data.rows(0)).detach()) == pytest.approx(MLPERF["loss"], rel=3e-6)
    assert_norms(model.gradient_norms(data.rows(0)), MLPERF["gradient_norms"])


def test_the_forms_of_gelu_can_be_told_apart() -> None:
    exact = FLAGPERF["erf_loss"]
    assert FLAGPERF["tanh_loss"] == pytest.approx(MLPERF["loss"], rel=3e-6)
    assert FLAGPERF["tanh_loss"] != pytest.approx(exact, rel=3e-6)


def assert_norms(norms: dict[str, float], expected: dict[str, float]) -> None:
    assert norms.keys() == expected.keys()
    for name, norm in norms.items():  # a key's bias shifts all scores of a query alike: 0 but for rounding
        assert norm == pytest.approx(expected[name], rel=1e-4, abs=2e-6), name


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_evaluation_set_gives_the_originals_accuracies_and_losses(framework: str, tmp_path: Path) -> None:
    write_shard(tmp_path / EVALUATION_FILE, data.rows(0, data.EVALUATED))
    kind, device = CASES[framework]
    settings = TrainingSettings(eval_batch_size=7, precision="fp32")
    case: Any = kind(Context(tmp_path, settings, data.MODEL, device))
    model = FRAMEWORKS[framework]("tanh").model
    dataset = case.evaluation_data()
    sums = [0.0] * 6
    for begin in range(0, data.EVALUATED, 7):
        rows = np.arange(begin, min(begin + 7, data.EVALUATED))
        inputs = dataset.batch(Samples(0, np.zeros_like(rows), rows)).inputs
        sums = [total + float(part) for total, part in zip(sums, case.evaluate(model, inputs), strict=True)]
    metrics = case.metrics(sums)
    assert 0.05 < metrics["mlm_accuracy"] < 0.95
    assert metrics["mlm_accuracy"] == pytest.approx(MLPERF["evaluation_masked_lm_accuracy"], abs=1e-6)
    assert metrics["mlm_accuracy"] == pytest.approx(FLAGPERF["tanh_evaluation_accuracy"], abs=1e-6)
    assert metrics["nsp_accuracy"] == pytest.approx(MLPERF["evaluation_next_sentence_accuracy"], abs=1e-6)
    losses = MLPERF["evaluation_masked_lm_loss"] + MLPERF["evaluation_next_sentence_loss"]
    assert metrics["eval_loss"] == pytest.approx(losses, rel=1e-5)


def test_30_steps_of_lamb_with_clipping_are_mlperfs() -> None:
    ours = OnPytorch("tanh")
    settings = TrainingSettings(
        optimizer="lamb", learning_rate=data.RATE, weight_decay_rate=data.DECAY, epsilon=1e-6
    )
    optimizer = make_optimizer(settings, ours.model)
    rate = make_schedule(
        "linear", peak=data.RATE, warmup_steps=0, decay_steps=data.DECAY_STEPS, end_factor=0.0
    )
    losses, norms = [], []
    for step in range(data.STEPS):
        for group in optimizer.param_groups:
            group["lr"] = rate(step)
        loss = ours.loss(data.rows(step * data.SAMPLES))
        loss.backward()  # type: ignore[no-untyped-call]
        norms.append(float(torch.nn.utils.clip_grad_norm_(ours.model.parameters(), data.CLIP)))
        losses.append(float(loss.detach()))
        optimizer.step()
        optimizer.zero_grad()
    assert max(MLPERF["training_gradient_norms"]) > data.CLIP  # some steps are clipped
    np.testing.assert_allclose(losses, MLPERF["training_losses"], rtol=1e-4)
    np.testing.assert_allclose(norms, MLPERF["training_gradient_norms"], rtol=1e-3)
    for name, parameter in ours.model.named_parameters():
        wide = parameter.detach().double().numpy()
        summary = [np.linalg.norm(wide), wide.sum(), (wide**3).sum()]
        expected = MLPERF["trained_weights"][transformers_name(name)]
        np.testing.assert_allclose(summary, expected, rtol=1e-4, atol=1e-3, err_msg=name)
