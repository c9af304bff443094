"""The model against transformers: same weights, same chunks with padding, same loss and gradients."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode
from transformers import GPT2LMHeadModel

from benchmarks.common.arrays import Array
from benchmarks.common.shape import TransformerConfig, configured
from benchmarks.cpm.chunks import chunk_arrays
from benchmarks.cpm.flops import training_flops
from benchmarks.cpm.pytorch import loss as loss_module
from benchmarks.cpm.pytorch.loss import TiedCrossEntropy, predict
from benchmarks.cpm.pytorch.model import CpmModel
from benchmarks.driver.pytorch.tensors import moved
from benchmarks.driver.vendor_facts import TRAINING_FOLDER
from tests.benchmarks.cpm.chunk_data import LENGTHS, inputs_of, our_model, random_chunks, their_model
from tests.benchmarks.cpm.their_gpt2 import from_transformers
from utils.config_files import load_constants

DEMO_CONFIG = TRAINING_FOLDER / "cpu" / "cpm-pytorch" / "config" / "config_common.py"


def their_loss(model: GPT2LMHeadModel, chunks: Array) -> torch.Tensor:
    """Mean cross entropy over the labels that are tokens; padding is any token, hidden from the loss only."""
    tokens = torch.from_numpy(chunks).long()
    logits = model(input_ids=tokens[:, :-1].clamp_min(0)).logits
    labels = torch.where(tokens[:, 1:] < 0, -100, tokens[:, 1:])
    return functional.cross_entropy(logits.flatten(0, 1), labels.flatten())


@pytest.mark.parametrize("lengths", [LENGTHS, (13,) * 4], ids=["padded", "full"])
def test_loss_and_gradients_equal_those_of_transformers(lengths: tuple[int, ...]) -> None:
    theirs = their_model()
    ours = our_model(theirs)
    chunks = random_chunks(lengths)
    inputs = inputs_of(chunks)
    expected = their_loss(theirs, chunks)
    found = ours(inputs) / len(inputs.labels)
    assert found.item() == pytest.approx(expected.item(), rel=1e-5)

    expected.backward()  # type: ignore[no-untyped-call]
    found.backward()
    wanted = from_transformers({name: p.grad for name, p in theirs.named_parameters() if p.grad is not None})
    for name, parameter in ours.named_parameters():
        assert parameter.grad is not None
        # a key's bias shifts all scores of a query alike: its gradient is 0 but for rounding
        torch.testing.assert_close(parameter.grad, wanted[name], rtol=2e-4, atol=2e-6)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="ragged causal attention has kernels for CUDA only")
def test_ragged_samples_on_a_gpu_give_the_same_as_a_rectangle_on_a_cpu() -> None:
    torch.manual_seed(2)
    model = CpmModel(TransformerConfig(50, 32, 2, 4, 12, 0.0, 0.0, initializer_range=0.3))
    chunks = random_chunks()
    loss = model(inputs_of(chunks))
    expected = torch.autograd.grad(loss, list(model.parameters()))
    model.cuda()
    on_gpu = model(moved(inputs_of(chunks, ragged=True), torch.device("cuda")))
    assert on_gpu.item() == pytest.approx(loss.item(), rel=1e-4)
    for one, other in zip(torch.autograd.grad(on_gpu, list(model.parameters())), expected, strict=True):
        torch.testing.assert_close(one.cpu(), other, rtol=1e-3, atol=1e-4)


def test_the_loss_transformers_itself_computes_is_the_same() -> None:
    theirs, chunks = their_model(), random_chunks((13, 13, 13))
    tokens = torch.from_numpy(chunks).long()
    # theirs shifts the labels itself: the last token of 12 inputs then has none, so chunks of 12 are compared
    expected = theirs(input_ids=tokens[:, :12], labels=tokens[:, :12]).loss
    inputs = inputs_of(chunks[:, :12])
    assert (our_model(theirs)(inputs) / len(inputs.labels)).item() == pytest.approx(expected.item(), rel=1e-5)


def test_no_token_sees_a_later_one() -> None:
    model = our_model(their_model())
    chunks = random_chunks((9, 13))
    changed = chunks.copy()
    changed[:, 6:] = 8 + (changed[:, 6:] + 1) % 40
    changed[0, 9:] = -1
    before, after = (model.hidden(inputs_of(c)) for c in (chunks, changed))
    torch.testing.assert_close(before[:6], after[:6])
    torch.testing.assert_close(before[8:14], after[8:14])
    assert not torch.allclose(before[6:8], after[6:8])


@pytest.mark.parametrize(
    ("map_", "std"),
    [("attention.query_key_value", 0.02), ("attention.dense", 0.005), ("mlp.dense_4h_to_h", 0.005)],
)
def test_the_maps_that_add_to_the_residual_stream_begin_smaller(map_: str, std: float) -> None:
    torch.manual_seed(0)
    model = CpmModel(
        TransformerConfig(1000, 64, num_layers=8, num_attention_heads=4, max_position_embeddings=32)
    )
    assert model.state_dict()[f"transformer.layers.3.{map_}.weight"].std().item() == pytest.approx(
        std, rel=0.05
    )


def test_dropout_acts_in_training_only() -> None:
    model, inputs = (
        our_model(their_model(), hidden_dropout=0.5, attention_dropout=0.5),
        inputs_of(random_chunks()),
    )
    assert model(inputs).item() != model(inputs).item()
    model.eval()
    assert model(inputs).item() == model(inputs).item()


def test_cpm_1_medium_has_0_33_g_parameters() -> None:
    with torch.device("meta"):
        model = CpmModel(TransformerConfig(30_000, 1024, 24, 16, 1024))
    assert sum(parameter.numel() for parameter in model.parameters()) == 334_080_000


@pytest.mark.parametrize("block", [1, 7, 64, 1 << 30])
def test_tied_cross_entropy_equals_the_plain_one_whatever_the_block(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(1)
    hidden = torch.randn(20, 8, dtype=torch.float64, requires_grad=True)
    weight = (3 * torch.randn(50, 8, dtype=torch.float64)).requires_grad_()
    labels = torch.randint(50, (20,))
    plain = functional.cross_entropy(hidden @ weight.T, labels, reduction="sum")
    expected = torch.autograd.grad(0.3 * plain, (hidden, weight))
    monkeypatch.setattr(loss_module, "_CPU_LOGITS", block * 50)
    ours = TiedCrossEntropy.apply(hidden, weight, labels)  # type: ignore[no-untyped-call]
    found = torch.autograd.grad(0.3 * ours, (hidden, weight))
    assert ours.item() == pytest.approx(plain.item(), rel=1e-5)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    tokens, total = predict(hidden, weight, labels)
    assert tokens.tolist() == (hidden @ weight.T).argmax(-1).tolist()
    assert total.item() == pytest.approx(plain.item(), rel=1e-5)


def test_a_label_whose_probability_is_no_number_still_has_its_loss() -> None:
    hidden, weight = torch.tensor([[1000.0]]), torch.tensor([[1.0], [0.0]])
    loss = TiedCrossEntropy.apply(hidden, weight, torch.tensor([1]))  # type: ignore[no-untyped-call]
    assert loss.item() == pytest.approx(1000.0)


def test_autocast_multiplies_in_bf16_and_adds_up_in_fp32() -> None:
    torch.manual_seed(1)
    hidden, weight = torch.randn(64, 32, requires_grad=True), torch.randn(90, 32, requires_grad=True)
    labels = torch.randint(90, (64,))
    plain = functional.cross_entropy(hidden @ weight.T, labels, reduction="sum")
    with torch.autocast("cpu", torch.bfloat16):
        ours = TiedCrossEntropy.apply(hidden, weight, labels)  # type: ignore[no-untyped-call]
    assert ours.dtype == torch.float32
    assert ours.item() == pytest.approx(plain.item(), rel=2e-3)
    for one, other in zip(
        torch.autograd.grad(ours, (hidden, weight)), torch.autograd.grad(plain, (hidden, weight)), strict=True
    ):
        assert one.dtype == torch.float32
        assert (one - other).norm() < 0.01 * other.norm()


@pytest.mark.parametrize("shape", [(8000, 128, 2, 64), (2000, 256, 4, 200)], ids=["demo", "4x256"])
def test_model_flops_equal_what_the_counter_of_torch_counts(shape: tuple[int, int, int, int]) -> None:
    """But for attention to later tokens, which this implementation multiplies out on a CPU and then hides."""
    vocabulary, hidden, layers, inputs = shape
    config = TransformerConfig(vocabulary, hidden, layers, 2, inputs, 0.0, 0.0)
    model = CpmModel(config)
    chunks = random_chunks((inputs + 1,) * 3, length=inputs + 1)
    with FlopCounterMode(display=False) as counter:
        model(inputs_of(chunks)).backward()
    later = 3 * 3 * layers * 2 * inputs * (inputs - 1) * hidden
    lengths = chunk_arrays(chunks).lengths
    counted = counter.get_total_flops() - later
    assert training_flops(config, lengths) == pytest.approx(counted, rel=0.02)


def test_the_demos_flops_are_within_2_percent_of_the_counter_as_it_stands() -> None:
    """Attention to later tokens included, which is 1 % there: 64 tokens, a vocabulary of 8000."""
    demo = load_constants(DEMO_CONFIG)
    config = configured(TransformerConfig, demo)
    assert (config.hidden_size, config.vocab_size, config.max_position_embeddings) == (128, 8000, 64)
    model, chunks = CpmModel(config), random_chunks((65,) * 3, length=65)
    with FlopCounterMode(display=False) as counter:
        model(inputs_of(chunks)).backward()
    flops = training_flops(config, chunk_arrays(chunks).lengths)
    assert flops == pytest.approx(counter.get_total_flops(), rel=0.02)
