"""Golden figures of FlagPerf's CPM code (golden.json, with where they come from): chunks, words, model, metric."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.common.arrays import Array
from benchmarks.common.shape import TransformerConfig
from benchmarks.cpm.chunks import PADDING
from benchmarks.cpm.prepare.steps import cut
from benchmarks.cpm.prepare.vocabulary import segmented
from benchmarks.cpm.pytorch.metric import embedding_average_sums
from benchmarks.cpm.pytorch.model import CpmModel
from tests.benchmarks.common.formulas import gradient_figures, set_by_formula
from tests.benchmarks.cpm import golden_data as data
from tests.benchmarks.cpm.chunk_data import inputs_of

GOLDEN: dict[str, Any] = json.loads(Path(__file__).with_name("golden.json").read_text(encoding="utf-8"))


def our_chunks() -> Array:
    return cut(([*document, data.END] for document in data.documents()), data.INPUTS + 1)


def test_documents_are_cut_into_the_originals_chunks() -> None:
    """But for a last chunk of one token, which has no label and which the original pads and then never counts."""
    originals = [[int(token) for token in chunk.split()] for chunk in GOLDEN["chunks"]]
    with_label = [chunk for chunk in originals if chunk[1] != data.PAD]
    assert len(originals) - len(with_label) == 1
    assert np.where(our_chunks() == PADDING, data.PAD, our_chunks()).tolist() == with_label


def test_text_is_cut_into_the_originals_words() -> None:
    assert [segmented(text) for text in data.TEXTS] == GOLDEN["words"]


def test_logits_loss_and_gradients_are_the_originals() -> None:
    model = CpmModel(TransformerConfig(**data.SHAPE, hidden_dropout=0.0, attention_dropout=0.0))
    set_by_formula(model)
    inputs, golden = inputs_of(our_chunks()), GOLDEN["model"]
    logits = model.hidden(inputs) @ model.word_embeddings.weight.T
    of_labels = logits.gather(1, inputs.labels[:, None])[:, 0]
    torch.testing.assert_close(of_labels, torch.tensor(golden["label_logits"]), rtol=1e-4, atol=1e-5)
    predicted, _ = model.predict(inputs)
    assert predicted.tolist() == [int(token) for token in golden["largest"].split()]

    loss = model(inputs) / len(inputs.labels)
    assert loss.item() == pytest.approx(golden["loss"], rel=1e-5)
    loss.backward()
    figures = gradient_figures(model)
    assert figures.keys() == golden["gradients"].keys()
    for name, values in figures.items():
        # a key's bias shifts all scores of a query alike: its gradient is 0 but for rounding
        assert values == pytest.approx(golden["gradients"][name], rel=2e-4, abs=1e-5), name


@pytest.mark.parametrize("size", ["small", "large"])
def test_the_embedding_average_is_the_originals_and_exact_where_fp16_is_not(size: str) -> None:
    golden = GOLDEN["metric"][size]
    predicted, right, embedding = data.metric_data(*golden["shape"])
    lengths = [len(row) for row in right]
    lengths[0] //= 2  # the rest of the first sample has no labels
    kept = torch.arange(right.shape[1]) < torch.tensor(lengths)[:, None]
    offsets = torch.tensor([0, *lengths]).cumsum(0)
    score, scored = embedding_average_sums(predicted[kept], right[kept], offsets, embedding).tolist()
    assert scored == len(lengths)
    assert score / scored == pytest.approx(golden["float64"], rel=1e-9)
    assert score / scored == pytest.approx(golden["float32"], rel=1e-5)
    # fp16 sums are rounded token after token, and their mean to a step of 2^-11 above 0.5
    assert 0 < golden["float16"] - score / scored < 5e-4
