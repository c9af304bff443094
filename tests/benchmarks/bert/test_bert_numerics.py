"""The model against transformers: same weights, same batch with padding, same loss and gradients."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import BertConfig as TheirConfig
from transformers import BertForPreTraining as TheirModel

from benchmarks.bert.arrays import pretraining_arrays
from benchmarks.bert.flops import training_flops
from benchmarks.bert.names import transformers_name
from benchmarks.bert.prepare.originals import read_original
from benchmarks.bert.pytorch.inputs import make_inputs
from benchmarks.bert.pytorch.model import BertForPreTraining, pretraining_loss_sums
from benchmarks.bert.pytorch.weights import load_checkpoint, load_transformers_weights
from benchmarks.bert.shape import BertConfig
from benchmarks.common.conversion import convert
from benchmarks.common.shape import configured
from benchmarks.driver.vendor_facts import TRAINING_FOLDER
from tests.benchmarks.bert.shard_files import TINY_MODEL, random_rows
from tests.benchmarks.bert.their_bert import their_model
from utils.config_files import load_constants
from utils.errors import FlagPerfError

SAMPLES = 6
DEMO_CONFIG = TRAINING_FOLDER / "cpu" / "bert-pytorch" / "config" / "config_common.py"


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """So small products gain nothing from threads, and on a busy machine wait for them."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def _our_model(theirs: TheirModel) -> BertForPreTraining:
    model = BertForPreTraining(BertConfig(**TINY_MODEL))
    load_transformers_weights(model, theirs.state_dict())
    return model


def _their_loss(model: TheirModel, rows: dict[str, Any]) -> torch.Tensor:
    tensors = {key: torch.from_numpy(array).long() for key, array in rows.items()}
    labels = torch.full_like(tensors["input_ids"], -100)
    for sample, places in enumerate(tensors["masked_lm_positions"]):
        for place, label in zip(places, tensors["masked_lm_ids"][sample], strict=True):
            if place > 0:
                labels[sample, place] = label
    loss: torch.Tensor = model(
        input_ids=tensors["input_ids"],
        attention_mask=tensors["input_mask"],
        token_type_ids=tensors["segment_ids"],
        labels=labels,
        next_sentence_label=tensors["next_sentence_labels"],
    ).loss
    return loss


def _our_loss(model: BertForPreTraining, rows: dict[str, Any], *, ragged: bool) -> torch.Tensor:
    arrays = pretraining_arrays(rows)
    inputs = make_inputs(arrays, ragged=ragged)
    counts = torch.tensor([len(arrays.labels), len(arrays.lengths)])
    masked, next_sentence = model(inputs)
    return (pretraining_loss_sums(masked, next_sentence, inputs) / counts).sum()


@pytest.mark.parametrize("ragged", [False, True], ids=["rectangle", "ragged"])
@pytest.mark.parametrize("full", [False, True], ids=["padded", "full"])
def test_loss_and_gradients_equal_those_of_transformers(ragged: bool, full: bool) -> None:
    theirs = their_model()
    ours = _our_model(theirs)
    rows = random_rows(SAMPLES, seed=5, full=full)
    their_loss, our_loss = _their_loss(theirs, rows), _our_loss(ours, rows, ragged=ragged)
    assert our_loss.item() == pytest.approx(their_loss.item(), rel=1e-5)

    their_loss.backward()  # type: ignore[no-untyped-call]
    our_loss.backward()  # type: ignore[no-untyped-call]
    gradients = {name: parameter.grad for name, parameter in theirs.named_parameters()}
    for name, parameter in ours.named_parameters():
        expected = gradients[transformers_name(name)]
        assert parameter.grad is not None and expected is not None
        # a key's bias shifts all scores of a query alike: its gradient is 0 but for rounding
        torch.testing.assert_close(parameter.grad, expected, rtol=2e-4, atol=2e-6)


def test_every_parameter_has_a_counterpart() -> None:
    theirs = their_model()
    names = {transformers_name(name) for name, _ in _our_model(theirs).named_parameters()}
    assert names == {name for name, _ in theirs.named_parameters()}


def test_bert_large_has_the_tensors_of_bert_large_uncased() -> None:
    """At full size, without memory: names and shapes are those of transformers' model, 0.336 G parameters."""
    config = configured(
        BertConfig, load_constants(TRAINING_FOLDER / "benchmarks/bert/pytorch/config/_base.py")
    )
    published: dict[str, Any] = {  # config.json of bert-large-uncased
        "vocab_size": 30522, "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16,
        "intermediate_size": 4096, "max_position_embeddings": 512, "type_vocab_size": 2,
    }  # fmt: skip
    with torch.device("meta"):
        ours, theirs = BertForPreTraining(config), TheirModel(TheirConfig(**published))
    shapes = {transformers_name(name): parameter.shape for name, parameter in ours.named_parameters()}
    assert shapes == {name: parameter.shape for name, parameter in theirs.named_parameters()}
    assert config.num_attention_heads == 16
    assert sum(shape.numel() for shape in shapes.values()) == 336_226_108


def test_what_stands_in_padding_changes_nothing() -> None:
    model = _our_model(their_model())
    rows = random_rows(SAMPLES, seed=5)
    loss = _our_loss(model, rows, ragged=False)
    noisy = {**rows, "input_ids": rows["input_ids"] + 7 * (rows["input_mask"] == 0).astype("i4")}
    assert _our_loss(model, noisy, ragged=False).item() == pytest.approx(loss.item(), rel=1e-6)


def test_pre_layer_norm_is_another_model_and_ragged_equals_rectangle() -> None:
    torch.manual_seed(0)
    config = replace(BertConfig(**TINY_MODEL), pre_layer_norm=True, initializer_range=0.3)
    model = BertForPreTraining(config)
    post = BertForPreTraining(replace(config, pre_layer_norm=False))
    post.load_state_dict(model.state_dict(), strict=False)
    rows = random_rows(SAMPLES, seed=5)
    rectangle = _our_loss(model, rows, ragged=False).item()
    assert _our_loss(model, rows, ragged=True).item() == pytest.approx(rectangle, rel=1e-5)
    assert _our_loss(post, rows, ragged=False).item() != pytest.approx(rectangle, rel=1e-2)


def test_dropout_acts_in_training_only() -> None:
    config = replace(BertConfig(**TINY_MODEL), hidden_dropout_prob=0.5, attention_probs_dropout_prob=0.5)
    model, rows = BertForPreTraining(config), random_rows(SAMPLES, seed=5)
    first, second = (_our_loss(model, rows, ragged=False).item() for _ in range(2))
    assert first != second
    model.eval()
    first, second = (_our_loss(model, rows, ragged=False).item() for _ in range(2))
    assert first == second


def test_a_checkpoint_file_is_loaded_and_a_wrong_one_refused(tmp_path: Any) -> None:
    theirs = their_model()
    original = tmp_path / "model.pt"
    renamed = {
        name.replace("intermediate.dense.", "intermediate.dense_act."): t
        for name, t in theirs.state_dict().items()
    }
    torch.save({"model": renamed, "step": 7}, original)
    path = convert(original, None, read_original)
    model = BertForPreTraining(BertConfig(**TINY_MODEL))
    load_checkpoint(model, path)
    rows = random_rows(SAMPLES, seed=5)
    assert _our_loss(model, rows, ragged=False).item() == pytest.approx(
        _their_loss(theirs, rows).item(), rel=1e-5
    )

    wider = BertForPreTraining(BertConfig(**{**TINY_MODEL, "intermediate_size": 64}))
    with pytest.raises(
        FlagPerfError, match=r"intermediate\.dense\.weight = \(32, 16\): has the wrong shape: \(64, 16\) is"
    ):
        load_checkpoint(wider, path)
    with pytest.raises(FlagPerfError, match=r"absent\.safetensors"):
        load_checkpoint(model, tmp_path / "absent.safetensors")


@pytest.mark.parametrize("full", [False, True], ids=["padded", "full"])
def test_flops_formula_agrees_with_the_counter(full: bool) -> None:
    """At the demo's size. Sample by sample: the counter would count a batch's padding, the formula does not."""
    config = replace(
        configured(BertConfig, {**TINY_MODEL, **load_constants(DEMO_CONFIG)}), pre_layer_norm=False
    )
    assert (config.hidden_size, config.vocab_size, config.max_position_embeddings) == (128, 2000, 64)
    model = BertForPreTraining(config)
    rows = random_rows(8, seed=5, full=full, length=64, most=10)
    with FlopCounterMode(display=False) as counter:
        for sample in range(8):
            inputs = make_inputs(
                pretraining_arrays({key: a[sample : sample + 1] for key, a in rows.items()}), ragged=False
            )
            masked, next_sentence = model(inputs)
            pretraining_loss_sums(masked, next_sentence, inputs).sum().backward()  # type: ignore[no-untyped-call]
    predictions = (rows["masked_lm_positions"] > 0).sum(axis=1)
    counted = training_flops(config, rows["input_mask"].sum(axis=1), predictions)
    assert counted == pytest.approx(counter.get_total_flops(), rel=0.02)
