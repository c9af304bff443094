"""The peers of benches/: they compute what the cases compute, and what could not be compiled is said."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.common.shape import TransformerConfig
from benchmarks.glm.pytorch.inputs import make_inputs
from benchmarks.glm.pytorch.model import GlmConfig, cloze_loss_sum
from benchmarks.glm.pytorch.model import GlmForMultiTokenCloze as OurGlm
from benchmarks.glm.shards import TRAIN_FOLDER, read_folder
from tests.bench_modules import imported


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Any]]:
    yield from imported(monkeypatch)


def test_both_forms_of_the_glm_peer_have_the_loss_and_the_gradients_of_the_case(
    bench: Callable[[str], Any], tmp_path: Path
) -> None:
    small = bench("gpu_cases").TRAINING["glm"]
    bench("made_data").make_glm(tmp_path, small.amount(small=True))
    questions = read_folder(tmp_path, TRAIN_FOLDER)
    clozes, words = questions.clozes.take(np.arange(6)), questions.vocabulary
    shape = {"vocab_size": 512, "hidden_size": 32, "num_layers": 2, "num_attention_heads": 2}
    rest = {"max_position_embeddings": 64, "hidden_dropout": 0.0, "attention_dropout": 0.0}
    torch.manual_seed(1)
    ours = OurGlm(GlmConfig(**shape, **rest))  # type: ignore[arg-type]
    inputs = make_inputs(clozes, start=words.start, end=words.end, ragged=False)
    loss = cloze_loss_sum(ours(inputs), inputs)[0] / len(clozes)
    loss.backward()
    peer = bench("glm_peer")
    for form in (peer.row_a_candidate, peer.row_a_question):
        model = peer.GlmForMultiTokenCloze(TransformerConfig(**shape, **rest))  # type: ignore[arg-type]
        model.load_state_dict(ours.state_dict())
        output = model(**form(bench("plain_glm")._questions(clozes), words.start, words.end))
        assert output.loss.item() == pytest.approx(loss.item(), rel=1e-5)
        output.loss.backward()
        for name, parameter in ours.named_parameters():
            torch.testing.assert_close(dict(model.named_parameters())[name].grad, parameter.grad)


def test_a_peer_that_cannot_be_compiled_is_said_to_be_so_and_the_others_are_compared(
    bench: Callable[[str], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    comparison = bench("comparison")
    calls: list[str] = []

    def step(name: str) -> Callable[[int], float]:
        return lambda number: calls.append(name) or 1.0  # type: ignore[func-returns-value]

    def fails(number: int) -> float:
        raise RuntimeError("no C++ compiler\nsecond line")

    contenders = {"ours": step("ours"), "peer": step("peer"), "peer, compiled": fails}
    options = comparison.Options(batches=2, steps=3, threads=1, precision="fp32", compiled=True)
    result = comparison.Comparison("demo", "title", 4, 1e6, contenders).result(options)
    assert result.peer == "peer"
    assert result.not_compiled == {"peer, compiled": "RuntimeError: no C++ compiler"}
    assert json.loads(json.dumps(result.as_json()))["not_compiled"] == result.not_compiled
    assert "NOT COMPILED: RuntimeError: no C++ compiler" in capsys.readouterr().out
    assert calls.count("ours") == calls.count("peer") == 1 + 1 + 3


def test_another_mathematics_is_not_compared(bench: Callable[[str], Any]) -> None:
    comparison = bench("comparison")
    contenders = {"ours": lambda number: 1.0, "peer": lambda number: 1.1}
    options = comparison.Options(batches=1, steps=1, threads=1, precision="fp32", compiled=False)
    with pytest.raises(SystemExit, match="the first losses differ"):
        comparison.Comparison("demo", "title", 4, 1e6, contenders).result(options)
