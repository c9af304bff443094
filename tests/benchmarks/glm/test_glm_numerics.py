"""The model against the plain form of the paper's definition: same weights and questions, same scores and gradients."""

from __future__ import annotations

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.driver.pytorch.tensors import moved
from benchmarks.glm.flops import training_flops
from benchmarks.glm.pytorch.model import GlmConfig, GlmForMultiTokenCloze, cloze_loss_sum
from tests.benchmarks.glm.cloze_data import (
    TINY,
    as_clozes,
    inputs_of,
    our_model,
    plain_model,
    random_questions,
)
from tests.benchmarks.glm.plain import END, MASK, START, Question, plain_batch

RAGGED = random_questions(5, seed=1)
EQUAL = random_questions(4, seed=2, source=9, answer=2)
SINGLE = random_questions(1, seed=4)


@pytest.mark.parametrize("questions", [RAGGED, EQUAL, SINGLE], ids=["padded", "full", "one"])
def test_scores_loss_and_gradients_equal_the_plain_forms(questions: list[Question]) -> None:
    ours = our_model()
    plain = plain_model(ours)
    batch, inputs = plain_batch(questions), inputs_of(questions)
    expected, found = plain(batch), ours(inputs)
    torch.testing.assert_close(found[batch.is_candidate], expected[batch.is_candidate], rtol=1e-5, atol=1e-4)
    assert (found[~batch.is_candidate] == -torch.inf).all()

    loss = cloze_loss_sum(found, inputs)[0] / len(questions)
    expected_loss = plain.loss(batch)
    assert loss.item() == pytest.approx(expected_loss.item(), rel=1e-5)
    loss.backward()
    expected_loss.backward()
    wanted = plain.named()
    for name, parameter in ours.named_parameters():
        assert parameter.grad is not None
        # a key's bias shifts all scores of a query alike: its gradient is 0 but for rounding
        torch.testing.assert_close(parameter.grad, wanted[name].grad, rtol=1e-3, atol=2e-5)


@pytest.mark.parametrize("questions", [RAGGED, EQUAL], ids=["padded", "full"])
def test_every_row_sees_what_the_definition_lets_it_see(questions: list[Question]) -> None:
    """Mask for mask: who influences whom in the layout's attention, against the plain form's mask."""
    inputs, batch = inputs_of(questions), plain_batch(questions)
    layout, source_rows = inputs.layout, inputs.layout.source.rows
    rows = len(inputs.input_ids)
    identity = torch.eye(rows)[:, None, :]  # each row's value names the row
    flat = torch.zeros(rows, 1, rows)
    seen = layout.attend(flat, flat, identity, 0.0)[:, 0] > 0  # equal scores: what is seen has a share
    first_source, first_answer, sequence = 0, source_rows, 0
    most = batch.is_candidate.shape[1]
    for question in questions:
        length = len(question.source)
        source = range(first_source, first_source + length)
        start, first_answer = first_answer, first_answer + 1  # one row for all candidates
        for place, candidate in enumerate(question.candidates):
            own = [start, *range(first_answer, first_answer + len(candidate))]
            mask = batch.mask[sequence + place][: length + len(own), : length + len(own)]
            here = [*source, *own]
            assert (seen[here][:, here] == mask.bool()).all()
            others = [row for row in range(rows) if row not in here]
            assert not seen[here][:, others].any()
            first_answer += len(candidate)
        first_source += length
        sequence += most


def test_positions_are_two_dimensional() -> None:
    inputs = inputs_of([Question([2, 10, MASK, 11, 0], [[20], [21, 22]], 0)])
    assert inputs.input_ids.tolist() == [2, 10, MASK, 11, 0, START, 20, 21, 22]
    assert inputs.position_ids.tolist() == [0, 1, 2, 3, 4, 2, 2, 2, 2]
    assert inputs.block_position_ids.tolist() == [0, 0, 0, 0, 0, 1, 2, 2, 3]
    assert inputs.targets.tolist() == [20, END, 21, 22, END]


def test_no_source_token_and_no_other_candidate_sees_a_candidate() -> None:
    model = our_model()
    question = random_questions(1, seed=6)[0]
    changed = Question(question.source, [[7, 8, 9], *question.candidates[1:]], question.right)
    before, after = model(inputs_of([question])), model(inputs_of([changed]))
    torch.testing.assert_close(before[0, 1:], after[0, 1:])
    assert before[0, 0] != after[0, 0]


def test_a_question_scores_the_same_alone_and_among_others() -> None:
    model = our_model()
    together = model(inputs_of(RAGGED))
    for row, question in enumerate(RAGGED):
        alone = model(inputs_of([question]))[0]
        torch.testing.assert_close(together[row, : len(alone)], alone, rtol=1e-4, atol=1e-4)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="ragged attention has kernels for CUDA only")
def test_ragged_sources_on_a_gpu_give_the_same_as_rectangles_on_a_cpu() -> None:
    torch.manual_seed(2)
    model = our_model(hidden_size=32)
    inputs = inputs_of(RAGGED)
    loss = cloze_loss_sum(model(inputs), inputs)[0]
    expected = torch.autograd.grad(loss, list(model.parameters()))
    model.cuda()
    there = moved(inputs_of(RAGGED, ragged=True), torch.device("cuda"))
    on_gpu = cloze_loss_sum(model(there), there)[0]
    assert on_gpu.item() == pytest.approx(loss.item(), rel=1e-4)
    for one, other in zip(torch.autograd.grad(on_gpu, list(model.parameters())), expected, strict=True):
        torch.testing.assert_close(one.cpu(), other, rtol=1e-3, atol=1e-3)


def test_ragged_sources_give_the_same_as_rectangles() -> None:
    """Nested tensors on the CPU: forward only, as far as their kernels go."""
    model = our_model().eval()
    with torch.inference_mode():
        torch.testing.assert_close(model(inputs_of(RAGGED, ragged=True)), model(inputs_of(RAGGED)))


def test_bf16_stays_near_fp32() -> None:
    model, inputs = our_model(initializer_range=0.1), inputs_of(RAGGED)
    exact = cloze_loss_sum(model(inputs), inputs)
    with torch.autocast("cpu", torch.bfloat16):
        found = cloze_loss_sum(model(inputs), inputs)
    assert found.dtype == torch.float32
    assert found.item() == pytest.approx(exact.item(), rel=2e-2)


def test_dropout_acts_in_training_only() -> None:
    model, inputs = our_model(hidden_dropout=0.5, attention_dropout=0.5), inputs_of(RAGGED)
    assert not torch.equal(model(inputs), model(inputs))
    model.eval()
    assert torch.equal(model(inputs), model(inputs))


def test_it_learns_32_questions_by_heart() -> None:
    """The whole chain of gradients is right: scores of the right candidates rise above all others."""
    torch.manual_seed(0)
    model = GlmForMultiTokenCloze(
        GlmConfig(**{**TINY, "hidden_size": 64, "hidden_dropout": 0, "attention_dropout": 0})
    )
    inputs = inputs_of(random_questions(32, seed=9))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.0)
    for _ in range(60):
        optimizer.zero_grad()
        cloze_loss_sum(model(inputs), inputs).backward()
        optimizer.step()
    chosen = model(inputs).argmax(1, keepdim=True)
    assert inputs.exact_match.gather(1, chosen).mean().item() == 1.0


def test_glm_large_has_0_34_g_parameters() -> None:
    with torch.device("meta"):
        model = GlmForMultiTokenCloze(GlmConfig(30_592, 1024, 24, 16, 512))
    layers = 24 * (12 * 1024 * 1024 + 13 * 1024)
    assert (
        sum(parameter.numel() for parameter in model.parameters()) == layers + (30_592 + 2 * 513 + 2) * 1024
    )


@pytest.mark.parametrize(
    ("map_", "std"),
    [("attention.query_key_value", 0.02), ("attention.dense", 0.005), ("mlp.dense_4h_to_h", 0.005)],
)
def test_the_maps_that_add_to_the_residual_stream_begin_smaller(map_: str, std: float) -> None:
    torch.manual_seed(0)
    model = GlmForMultiTokenCloze(
        GlmConfig(1000, 64, num_layers=8, num_attention_heads=4, max_position_embeddings=32)
    )
    assert model.state_dict()[f"transformer.layers.3.{map_}.weight"].std().item() == pytest.approx(
        std, rel=0.05
    )


@pytest.mark.parametrize("shape", [(5002, 128, 2, 72), (2000, 256, 4, 200)], ids=["demo", "4x256"])
def test_model_flops_equal_what_the_counter_of_torch_counts(shape: tuple[int, int, int, int]) -> None:
    """But for what is multiplied and hidden: padding, and of a candidate other candidates and later tokens."""
    vocabulary, hidden, layers, source = shape
    config = GlmConfig(vocabulary, hidden, layers, 2, source + 3, 0.0, 0.0)
    model = GlmForMultiTokenCloze(config)
    questions = random_questions(3, seed=1, source=source, answer=2)
    with FlopCounterMode(display=False) as counter:
        model(inputs_of(questions)).sum().backward()
    lines, rows = 8, 7  # a start, three candidates of two tokens, and padding
    seen = rows * source + 1 + 3 * 5  # of their own 49 places they see 1 + 3 x (2 + 3)
    hidden_places = 3 * 3 * layers * 4 * (lines * (source + lines) - seen) * hidden
    counted = counter.get_total_flops() - hidden_places
    assert training_flops(config, as_clozes(questions)) == pytest.approx(counted, rel=1e-6)
