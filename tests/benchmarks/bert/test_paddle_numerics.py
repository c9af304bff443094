"""BERT on Paddle against BERT on PyTorch: same weights, same batch with padding, same loss and gradients."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import paddle
import pytest
import torch
from numpy.typing import NDArray

from benchmarks.bert.arrays import pretraining_arrays
from benchmarks.bert.names import transformers_name
from benchmarks.bert.paddle import layout
from benchmarks.bert.paddle.inputs import make_inputs
from benchmarks.bert.paddle.model import BertForPreTraining, Linear, pretraining_loss_sums
from benchmarks.bert.paddle.weights import load_checkpoint, load_transformers_weights
from benchmarks.bert.prepare.originals import read_original
from benchmarks.bert.pytorch import inputs as torch_inputs
from benchmarks.bert.pytorch import model as torch_model
from benchmarks.bert.shape import BertConfig
from benchmarks.common.conversion import convert
from tests.benchmarks.bert.shard_files import TINY_MODEL, VOCABULARY, random_rows
from tests.fakes.paddle import plain_varlen_attention
from utils.errors import FlagPerfError

SAMPLES = 6
Rows = dict[str, Any]


def _torch_model(**settings: Any) -> torch_model.BertForPreTraining:
    """With weights that let no part of the model go unseen."""
    torch.manual_seed(3)
    model = torch_model.BertForPreTraining(BertConfig(**{**TINY_MODEL, "initializer_range": 0.3, **settings}))
    with torch.no_grad():  # biases and normalisation start at 0 and 1: errors there would not be seen
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def _named(model: torch_model.BertForPreTraining) -> dict[str, NDArray[Any]]:
    """Its weights under transformers' names."""
    return {transformers_name(name): weight.detach().numpy() for name, weight in model.named_parameters()}


def _paddle_model(theirs: torch_model.BertForPreTraining) -> BertForPreTraining:
    model = BertForPreTraining(theirs.config)
    load_transformers_weights(model, _named(theirs))
    return model


def _loss(model: BertForPreTraining, rows: Rows, ragged_type: str | None = None) -> paddle.Tensor:
    arrays = pretraining_arrays(rows)
    inputs = make_inputs(arrays, ragged_type=ragged_type)
    counts = paddle.to_tensor([float(len(arrays.labels)), float(len(arrays.lengths))])
    masked, next_sentence = model(inputs)
    return (pretraining_loss_sums(masked, next_sentence, inputs) / counts).sum()


def _torch_loss(model: torch_model.BertForPreTraining, rows: Rows) -> torch.Tensor:
    arrays = pretraining_arrays(rows)
    inputs = torch_inputs.make_inputs(arrays, ragged=False)
    counts = torch.tensor([len(arrays.labels), len(arrays.lengths)])
    masked, next_sentence = model(inputs)
    return (torch_model.pretraining_loss_sums(masked, next_sentence, inputs) / counts).sum()


def _is_transposed(model: BertForPreTraining, name: str) -> bool:
    """Paddle's linear maps hold (inputs, outputs) where PyTorch's hold (outputs, inputs)."""
    layers = dict(model.named_sublayers())
    folder, _, last = name.rpartition(".")
    return last == "weight" and isinstance(layers.get(folder), Linear)


@pytest.mark.parametrize("full", [False, True], ids=["padded", "full"])
@pytest.mark.parametrize("pre_layer_norm", [False, True], ids=["post-norm", "pre-norm"])
def test_loss_and_gradients_equal_those_of_pytorch(full: bool, pre_layer_norm: bool) -> None:
    theirs = _torch_model(pre_layer_norm=False)
    ours = _paddle_model(theirs)
    if (
        pre_layer_norm
    ):  # the final norm has no counterpart among transformers' names, and starts as the identity
        theirs, ours = _as_pre_norm(theirs, ours)
    rows = random_rows(SAMPLES, seed=5, full=full)
    their_loss, our_loss = _torch_loss(theirs, rows), _loss(ours, rows)
    assert float(our_loss) == pytest.approx(their_loss.item(), rel=1e-5)

    their_loss.backward()  # type: ignore[no-untyped-call]
    our_loss.backward()
    expected = {name: parameter.grad for name, parameter in theirs.named_parameters()}
    names = [name for name, _ in ours.named_parameters()]
    assert names == list(expected)
    for name, parameter in ours.named_parameters():
        gradient = expected[name]
        assert parameter.grad is not None and gradient is not None
        grad = parameter.grad.numpy()
        grad = grad.T if _is_transposed(ours, name) else grad
        np.testing.assert_allclose(grad, gradient.numpy(), rtol=2e-4, atol=2e-6, err_msg=name)


def _as_pre_norm(
    theirs: torch_model.BertForPreTraining, ours: BertForPreTraining
) -> tuple[torch_model.BertForPreTraining, BertForPreTraining]:
    config = replace(theirs.config, pre_layer_norm=True)
    their_model, our_model = torch_model.BertForPreTraining(config), BertForPreTraining(config)
    their_model.load_state_dict(theirs.state_dict(), strict=False)
    our_model.set_state_dict(ours.state_dict())
    return their_model, our_model


def test_what_stands_in_padding_changes_nothing() -> None:
    model = _paddle_model(_torch_model())
    rows = random_rows(SAMPLES, seed=5)
    noisy = {**rows, "input_ids": rows["input_ids"] + 7 * (rows["input_mask"] == 0).astype("i4")}
    assert float(_loss(model, noisy)) == pytest.approx(float(_loss(model, rows)), rel=1e-6)


def test_dropout_acts_in_training_only() -> None:
    config = BertConfig(**{**TINY_MODEL, "hidden_dropout_prob": 0.5, "attention_probs_dropout_prob": 0.5})
    model, rows = BertForPreTraining(config), random_rows(SAMPLES, seed=5)
    first, second = (float(_loss(model, rows)) for _ in range(2))
    assert first != second
    model.eval()
    first, second = (float(_loss(model, rows)) for _ in range(2))
    assert first == second


def test_ragged_samples_give_the_rectangles_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout.F.flash_attention, "flash_attn_unpadded", plain_varlen_attention)
    model, rows = _paddle_model(_torch_model()), random_rows(SAMPLES, seed=5)
    inputs = make_inputs(pretraining_arrays(rows), ragged_type="float32")
    assert inputs.input_ids.shape[0] == rows["input_mask"].sum()  # no padding is computed
    ragged = _loss(model, rows, ragged_type="float32")
    assert float(ragged) == pytest.approx(float(_loss(model, rows)), rel=1e-5)


def test_a_checkpoint_file_is_loaded_and_a_wrong_one_refused(tmp_path: Path) -> None:
    theirs = _torch_model()
    original = tmp_path / "model.pt"
    renamed = {
        name.replace("intermediate.dense.", "intermediate.dense_act."): torch.from_numpy(array)
        for name, array in _named(theirs).items()
    }
    torch.save({"model": renamed, "step": 7}, original)
    path = convert(original, None, read_original)
    model = BertForPreTraining(theirs.config)
    load_checkpoint(model, path)
    rows = random_rows(SAMPLES, seed=5)
    assert float(_loss(model, rows)) == pytest.approx(_torch_loss(theirs, rows).item(), rel=1e-5)

    wider = BertForPreTraining(replace(theirs.config, intermediate_size=64))
    with pytest.raises(
        FlagPerfError, match=r"intermediate\.dense\.weight = \(32, 16\): has the wrong shape: \(64, 16\) is"
    ):
        load_checkpoint(wider, path)
    with pytest.raises(FlagPerfError, match=r"absent\.safetensors"):
        load_checkpoint(model, tmp_path / "absent.safetensors")
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(FlagPerfError, match="cannot read the checkpoint"):
        load_checkpoint(model, path)


@pytest.mark.parametrize(("more", "fits"), [(4, True), (8, False)])
def test_a_padded_vocabulary_changes_no_loss(more: int, fits: bool) -> None:
    theirs = _torch_model()
    model = BertForPreTraining(replace(theirs.config, vocab_size=VOCABULARY + more))
    if not fits:
        with pytest.raises(FlagPerfError, match="word_embeddings"):
            load_transformers_weights(model, _named(theirs))
        return
    load_transformers_weights(model, _named(theirs))
    rows = random_rows(SAMPLES, seed=5)
    loss = _loss(model, rows)
    assert float(loss) == pytest.approx(_torch_loss(theirs, rows).item(), rel=1e-5)
    loss.backward()
    gradient = model.masked_token.bias.grad
    assert gradient is not None
    assert np.abs(gradient.numpy()[VOCABULARY:]).max() < 1e-20  # Paddle's softmax is never quite 0
