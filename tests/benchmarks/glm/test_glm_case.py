"""The case on small files: batches, counts, the checkpoint's form, what is refused."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import benchmarks
from benchmarks.driver.configuration import Configuration
from benchmarks.driver.pytorch.devices import Device
from benchmarks.driver.pytorch.engine import PytorchEngine
from benchmarks.driver.pytorch.hooks import Hooks
from benchmarks.driver.pytorch.process_group import ProcessGroup
from benchmarks.driver.ranks import RankEnvironment
from benchmarks.glm import shards
from benchmarks.glm.clozes import Clozes
from benchmarks.glm.prepare.command import main
from benchmarks.glm.pytorch.mimetic import sinusoids
from benchmarks.glm.pytorch.model import GlmForMultiTokenCloze
from benchmarks.glm.shards import Vocabulary
from tests.benchmarks.glm.cloze_data import (
    as_clozes,
    inputs_of,
    loader,
    make_case,
    our_model,
    random_questions,
    write_set,
)
from utils.config_files import load_constants
from utils.errors import FlagPerfError, ProblemsError
from utils.parameters import TrainingSettings

CONFIG = Path(benchmarks.__file__).parent / "glm/pytorch/config/_base.py"
QUESTIONS = random_questions(5, seed=1)


def settings(**values: Any) -> TrainingSettings:
    return TrainingSettings(**{"train_batch_size": 2, "eval_batch_size": 4, "max_steps": 1, **values})


def columns(clozes: Clozes) -> dict[str, list[float]]:
    return {name: np.asarray(getattr(clozes, name)).tolist() for name in shards.TYPES}


def test_questions_are_taken_in_any_order_and_any_number() -> None:
    everything = as_clozes(QUESTIONS)
    order = np.array([3, 0, 3, 4])
    expected = as_clozes([QUESTIONS[number] for number in order])
    assert columns(everything.take(order)) == columns(expected)


def test_a_set_is_written_and_read_file_after_file(tmp_path: Path) -> None:
    write_set(tmp_path, "train", as_clozes(QUESTIONS[:3]), as_clozes(QUESTIONS[3:]))
    read = shards.read_folder(tmp_path, "train")
    assert columns(read.clozes) == columns(as_clozes(QUESTIONS))
    assert read.vocabulary == Vocabulary(62, 60, 61)


def test_computed_tokens_are_sources_a_start_each_and_candidates() -> None:
    clozes = as_clozes(QUESTIONS)
    candidates = sum(len(candidate) for question in QUESTIONS for candidate in question.candidates)
    assert clozes.tokens == sum(len(question.source) for question in QUESTIONS) + 5 + candidates
    assert clozes.tokens == len(inputs_of(QUESTIONS).input_ids)


def test_an_epoch_takes_each_question_once_and_ranks_share_each_batch(tmp_path: Path) -> None:
    write_set(
        tmp_path, "train", as_clozes(random_questions(7, seed=2)), as_clozes(random_questions(5, seed=3))
    )
    whole = make_case(tmp_path, settings(train_batch_size=4))
    alone = [step[0] for step in itertools.islice(loader(whole).training_steps(), 4)]
    assert sum(batch.samples for batch in alone[:3]) == 12
    assert [batch.epoch for batch in alone] == [0, 0, 0, 1]
    shared = [
        [
            step[0]
            for step in itertools.islice(loader(make_case(tmp_path, settings()), rank, 2).training_steps(), 3)
        ]
        for rank in range(2)
    ]
    for number, batch in enumerate(alone[:3]):
        parts = [ranks[number] for ranks in shared]
        assert torch.cat([part.inputs.labels for part in parts]).tolist() == batch.inputs.labels.tolist()
        assert sum(part.tokens or 0 for part in parts) == batch.tokens
        assert batch.loss_counts == (4.0,)
        assert sum(part.flops or 0 for part in parts) == pytest.approx(batch.flops)


def test_a_run_that_goes_on_gets_the_batches_that_it_would_have_had(tmp_path: Path) -> None:
    write_set(tmp_path, "train", as_clozes(random_questions(7, seed=2)))
    unbroken = list(itertools.islice(loader(make_case(tmp_path, settings())).training_steps(), 6))
    resumed = list(itertools.islice(loader(make_case(tmp_path, settings())).training_steps(4), 2))
    for one, other in zip(unbroken[4:], resumed, strict=True):
        assert torch.equal(one[0].inputs.input_ids, other[0].inputs.input_ids)


def glm_checkpoint(model: GlmForMultiTokenCloze) -> dict[str, torch.Tensor]:
    """The weights in the layout of mp_rank_00_model_states.pt: GLM's names, half precision."""
    return {name: tensor.half() for name, tensor in model.state_dict().items()}


def test_the_names_are_those_of_glms_checkpoints() -> None:
    names = set(glm_checkpoint(our_model()))
    layer = "transformer.layers.1."
    maps = ("attention.query_key_value", "attention.dense", "mlp.dense_h_to_4h", "mlp.dense_4h_to_h")
    norms = ("input_layernorm", "post_attention_layernorm")
    expected = {f"{layer}{part}.{kind}" for part in (*maps, *norms) for kind in ("weight", "bias")}
    assert {name for name in names if name.startswith(layer)} == expected
    assert {name for name in names if "layers" not in name} == {
        "word_embeddings.weight",
        "transformer.position_embeddings.weight",
        "transformer.block_position_embeddings.weight",
        "transformer.final_layernorm.weight",
        "transformer.final_layernorm.bias",
    }


@pytest.mark.parametrize("form", ["deepspeed", "bare", "ddp", "cloze"])
def test_a_checkpoint_of_glms_layout_is_loaded(tmp_path: Path, form: str) -> None:
    source = our_model()
    weights = glm_checkpoint(source)
    content: Any = {
        "deepspeed": {
            "module": weights,
            "optimizer": None,
            "lr_scheduler": {"num_iters": 200000},
            "iteration": 200000,
        },
        "bare": weights,
        "ddp": {"module": {f"module.{name}": tensor for name, tensor in weights.items()}},
        "cloze": {"module": {f"model.{name}": tensor for name, tensor in weights.items()}},
    }[form]
    folder = tmp_path / "blocklm-large-blank" / "200000"
    folder.mkdir(parents=True)
    torch.save(content, folder / "mp_rank_00_model_states.pt")
    assert main(["--convert-checkpoint", str(folder / "mp_rank_00_model_states.pt")]) == 0
    name = load_constants(CONFIG)["init_checkpoint"]
    model = make_case(tmp_path, settings(), init_checkpoint=name).build_model()
    inputs = inputs_of(QUESTIONS)
    expected = source.half().float()(inputs)
    torch.testing.assert_close(model(inputs), expected)


def test_every_tensor_that_does_not_fit_is_named_and_none_is_copied(tmp_path: Path) -> None:
    weights = glm_checkpoint(our_model())
    del weights["transformer.final_layernorm.bias"]
    weights["transformer.layers.2.input_layernorm.weight"] = torch.ones(16)
    weights["word_embeddings.weight"] = torch.ones(65, 16)
    save_file(weights, tmp_path / "glm.safetensors")
    case = make_case(tmp_path, settings(), init_checkpoint="glm.safetensors")
    with pytest.raises(ProblemsError) as error:
        case.build_model()
    text = str(error.value)
    assert "transformer.final_layernorm.bias: is missing" in text
    assert "transformer.layers.2.input_layernorm.weight: is not a tensor of this model" in text
    assert "word_embeddings.weight = (65, 16): has the wrong shape: (64, 16) is wanted" in text
    assert str(tmp_path / "glm.safetensors") in text


def test_data_of_another_vocabulary_or_length_are_refused(tmp_path: Path) -> None:
    write_set(tmp_path, "val", as_clozes(random_questions(2, seed=1, source=22, answer=3)))
    with pytest.raises(FlagPerfError, match="a sample has 26 tokens"):
        make_case(tmp_path, settings()).evaluation_data()
    write_set(tmp_path, "val", as_clozes(QUESTIONS))
    with pytest.raises(FlagPerfError, match="ids below 61"):
        make_case(tmp_path, settings(), vocab_size=61).evaluation_data()


def test_a_folder_without_questions_and_a_damaged_file_are_named(tmp_path: Path) -> None:
    with pytest.raises(FlagPerfError, match=r"train: no \*.hdf5 file"):
        shards.read_folder(tmp_path, "train")
    write_set(tmp_path, "train", as_clozes(QUESTIONS))
    (path,) = (tmp_path / "train").iterdir()
    path.write_bytes(path.read_bytes()[:-400])
    with pytest.raises(FlagPerfError, match="cannot read these samples"):
        shards.read_folder(tmp_path, "train")


def test_files_of_two_vocabularies_are_refused(tmp_path: Path) -> None:
    write_set(tmp_path, "train", as_clozes(QUESTIONS))
    shards.write(tmp_path / "train" / "z.hdf5", as_clozes(QUESTIONS), Vocabulary(63, 60, 61))
    with pytest.raises(FlagPerfError, match=r"z\.hdf5: made with another vocabulary"):
        shards.read_folder(tmp_path, "train")


def losses(data_dir: Path, *, batch: int, accumulation: int) -> list[float]:
    """Of five steps on one rank."""
    driver = settings(
        train_batch_size=batch, gradient_accumulation_steps=accumulation, precision="fp32", seed=1
    )
    config = Configuration(driver, {}, ())
    device = Device("cpu", 0)
    group = ProcessGroup(RankEnvironment(), "gloo", device.torch, 60)
    engine = PytorchEngine(config, make_case(data_dir, driver, initializer_range=0.3), group, device, Hooks())
    found = []
    for step in itertools.islice(engine.training_steps(), 5):
        engine.train_step(step, 1e-2)
        found.append(engine.loss())
    return found


def test_the_losses_do_not_depend_on_how_a_batch_is_divided(tmp_path: Path) -> None:
    write_set(tmp_path, "train", as_clozes(random_questions(12, seed=2)))
    whole = losses(tmp_path, batch=4, accumulation=1)
    assert losses(tmp_path, batch=1, accumulation=4) == pytest.approx(whole, rel=1e-4)


def test_mimetic_weights_attend_by_likeness() -> None:
    """The products of query and key maps and of value and output maps are near the identity on their subspace."""
    model = our_model(hidden_size=64, num_attention_heads=2, mimetic_initialization=True)
    attention = model.transformer.layers[0].attention
    query, key, value = attention.query_key_value.weight.detach().view(3, 2, 32, 64)
    outwards = attention.dense.weight.detach().view(64, 2, 32)
    for head in range(2):
        for product in (query[head].T @ key[head], outwards[:, head] @ value[head]):
            off = product - torch.diag(product.diag())
            assert product.diag().mean() > 0.4
            assert product.diag().mean() > 8 * off.mean().abs()
    table = sinusoids(40, 64)
    likeness = (table @ table[20]) / (table[20] @ table[20])
    assert likeness.argmax() == 20 and likeness[21] > 0.8 > likeness[25] and likeness[40 - 1] < 0.5
