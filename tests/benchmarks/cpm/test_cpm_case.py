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
from benchmarks.common.pytorch.attention import Rectangle
from benchmarks.cpm.chunks import COLUMN, chunk_arrays, chunk_files, open_chunks
from benchmarks.cpm.prepare.command import main
from benchmarks.cpm.pytorch.model import CpmModel
from benchmarks.driver.configuration import Configuration
from benchmarks.driver.hooks import load_hooks
from benchmarks.driver.pytorch import facts, hooks
from benchmarks.driver.pytorch.devices import Device
from benchmarks.driver.pytorch.engine import PytorchEngine
from benchmarks.driver.pytorch.process_group import ProcessGroup
from benchmarks.driver.ranks import RankEnvironment
from benchmarks.driver.sampling import Samples, all_samples
from tests.benchmarks.cpm.chunk_data import (
    inputs_of,
    loader,
    make_case,
    our_model,
    random_chunks,
    their_model,
    write_set,
)
from utils.config_files import load_constants
from utils.errors import FlagPerfError, ProblemsError
from utils.parameters import TrainingSettings

CONFIG = Path(benchmarks.__file__).parent / "cpm/pytorch/config/_base.py"


def settings(**values: Any) -> TrainingSettings:
    return TrainingSettings(**{"train_batch_size": 2, "eval_batch_size": 4, "max_steps": 1, **values})


def test_a_chunk_is_divided_into_inputs_and_labels() -> None:
    arrays = chunk_arrays(np.array([[7, 8, 9, -1, -1], [5, 6, -1, -1, -1]], np.int32))
    assert arrays.inputs.tolist() == [[7, 8], [5, 0]]
    assert arrays.lengths.tolist() == [2, 1]
    assert arrays.labels.tolist() == [8, 9, 6]


def test_inputs_hold_no_padding() -> None:
    inputs = inputs_of(np.array([[7, 8, 9, -1, -1], [5, 6, -1, -1, -1]], np.int32))
    assert inputs.input_ids.tolist() == [7, 8, 5]
    assert inputs.position_ids.tolist() == [0, 1, 0]
    place = inputs.layout.place
    assert isinstance(place, Rectangle) and place.places is not None and place.places.tolist() == [0, 1, 8]
    assert inputs.layout.offsets.tolist() == [0, 2, 3]
    full = inputs_of(np.full((2, 9), 7, np.int32)).layout.place
    assert isinstance(full, Rectangle) and full.places is None


def test_samples_of_several_files_are_read_in_the_order_asked(tmp_path: Path) -> None:
    first, second = random_chunks(seed=1), random_chunks((4, 5), seed=2)
    write_set(tmp_path, "train", first, second)
    files = chunk_files(tmp_path / "train")
    assert [files.rows(0), files.rows(1)] == [6, 2]
    read = files.read(Samples(0, np.array([1, 0, 1, 0]), np.array([1, 5, 0, 2])))[COLUMN]
    assert (read == np.stack([second[1], first[5], second[0], first[2]])).all()
    assert (files.read(all_samples([6, 2]))[COLUMN] == np.concatenate([first, second])).all()


def test_an_epoch_takes_each_sample_once_and_ranks_share_each_batch(tmp_path: Path) -> None:
    write_set(tmp_path, "train", random_chunks(seed=1), random_chunks((4, 5, 6, 7, 8, 9), seed=2))
    whole = make_case(tmp_path, settings(train_batch_size=4))
    alone = [step[0] for step in itertools.islice(loader(whole).training_steps(), 3)]
    assert sum(batch.samples for batch in alone) == 12
    shared = [
        [
            step[0]
            for step in itertools.islice(loader(make_case(tmp_path, settings()), rank, 2).training_steps(), 3)
        ]
        for rank in range(2)
    ]
    for number, batch in enumerate(alone):
        parts = [ranks[number].inputs.labels for ranks in shared]
        assert torch.cat(parts).tolist() == batch.inputs.labels.tolist()
        assert batch.loss_counts == (sum(ranks[number].loss_counts[0] for ranks in shared),)
        assert batch.tokens == len(batch.inputs.labels)
    assert alone[0].flops and alone[0].flops > 0


def test_the_loss_of_the_case_is_the_sum_over_labels(tmp_path: Path) -> None:
    write_set(tmp_path, "train", random_chunks())
    case, model = make_case(tmp_path, settings()), our_model(their_model())
    inputs = inputs_of(random_chunks())
    loss = case.loss(model, inputs)
    assert loss.shape == (1,)
    assert loss.item() == model(inputs).item()


@pytest.mark.parametrize("training", [True, False])
def test_operations_are_counted_without_data(tmp_path: Path, training: bool) -> None:
    """Else nobody would see what a vendor's hook leaves out of them."""
    write_set(tmp_path, "train", random_chunks())
    case, model = make_case(tmp_path, settings()), our_model(their_model())
    inputs = inputs_of(random_chunks())
    assert facts.forward_flops(facts.shadow(model), case.loss, inputs, training=training) > 0


def cpm_checkpoint(model: CpmModel) -> dict[str, torch.Tensor]:
    """The weights in the layout of cpm_model_states_medium.pt: Megatron's names, half precision."""
    return {name: tensor.half() for name, tensor in model.state_dict().items()}


def test_the_names_are_those_of_cpms_checkpoints() -> None:
    names = set(cpm_checkpoint(our_model()))
    layer = "transformer.layers.1."
    maps = ("attention.query_key_value", "attention.dense", "mlp.dense_h_to_4h", "mlp.dense_4h_to_h")
    norms = ("input_layernorm", "post_attention_layernorm")
    expected = {f"{layer}{part}.{kind}" for part in (*maps, *norms) for kind in ("weight", "bias")}
    assert {name for name in names if name.startswith(layer)} == expected
    assert {name for name in names if "layers" not in name} == {
        "word_embeddings.weight",
        "position_embeddings.weight",
        "transformer.final_layernorm.weight",
        "transformer.final_layernorm.bias",
    }


@pytest.mark.parametrize("form", ["bare", "model", "module", "ddp"])
def test_a_checkpoint_of_cpms_layout_is_loaded(tmp_path: Path, form: str) -> None:
    source = our_model(their_model())
    weights: Any = cpm_checkpoint(source)
    if form == "ddp":
        weights = {
            "module": {f"module.{name}": tensor for name, tensor in weights.items()},
            "iteration": None,
        }
    elif form != "bare":
        weights = {form: weights}
    torch.save(weights, tmp_path / "cpm_model_states_medium.pt")
    assert main(["--convert-checkpoint", str(tmp_path / "cpm_model_states_medium.pt")]) == 0
    name = load_constants(CONFIG)["init_checkpoint"]
    model = make_case(tmp_path, settings(), init_checkpoint=name).build_model()
    inputs = inputs_of(random_chunks())
    assert model(inputs).item() == pytest.approx(source.half().float()(inputs).item(), rel=1e-6)


def test_every_tensor_that_does_not_fit_is_named_and_none_is_copied(tmp_path: Path) -> None:
    weights = cpm_checkpoint(our_model())
    del weights["transformer.final_layernorm.bias"]
    weights["transformer.layers.2.input_layernorm.weight"] = torch.ones(16)
    weights["word_embeddings.weight"] = torch.ones(51, 16)
    save_file(weights, tmp_path / "cpm.safetensors")
    case = make_case(tmp_path, settings(), init_checkpoint="cpm.safetensors")
    with pytest.raises(ProblemsError) as error:
        case.build_model()
    text = str(error.value)
    assert "transformer.final_layernorm.bias: is missing" in text
    assert "transformer.layers.2.input_layernorm.weight: is not a tensor of this model" in text
    assert "word_embeddings.weight = (51, 16): has the wrong shape: (50, 16) is wanted" in text
    assert str(tmp_path / "cpm.safetensors") in text


def test_data_of_another_vocabulary_or_length_are_refused(tmp_path: Path) -> None:
    write_set(tmp_path, "valid", random_chunks((14,), length=14))
    with pytest.raises(FlagPerfError, match="a sample has 13 tokens"):
        loader(make_case(tmp_path, settings())).evaluation_batches()
    write_set(tmp_path, "valid", random_chunks() + 40)
    with pytest.raises(FlagPerfError, match="ids below 50"):
        loader(make_case(tmp_path, settings())).evaluation_batches()


def test_a_folder_without_chunks_and_a_damaged_file_are_named(tmp_path: Path) -> None:
    with pytest.raises(FlagPerfError, match=r"train: no \*.npy file"):
        chunk_files(tmp_path / "train")
    write_set(tmp_path, "train", random_chunks())
    (path,) = chunk_files(tmp_path / "train").files
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(FlagPerfError, match="cannot read these samples"):
        open_chunks(path)
    np.save(path, np.zeros(3))
    with pytest.raises(FlagPerfError, match="it holds float64 of shape"):
        open_chunks(path)


def losses(data_dir: Path, *, batch: int, accumulation: int) -> list[float]:
    """Of five steps on one rank."""
    driver = settings(
        train_batch_size=batch, gradient_accumulation_steps=accumulation, precision="fp32", seed=1
    )
    config = Configuration(driver, {}, ())
    device = Device("cpu", 0)
    group = ProcessGroup(RankEnvironment(), "gloo", device, 60)
    case = make_case(data_dir, driver, initializer_range=0.3)
    engine = PytorchEngine(config, case, group, device, load_hooks(hooks, None))
    found = []
    for step in itertools.islice(engine.training_steps(), 5):
        engine.train_step(step, 1e-2)
        found.append(engine.loss())
    return found


def test_the_losses_do_not_depend_on_how_a_batch_is_divided(tmp_path: Path) -> None:
    """Micro-batches of unequal label counts: the mean is over the labels of the whole global batch."""
    write_set(tmp_path, "train", random_chunks(seed=1), random_chunks((4, 5, 6, 7, 8, 9), seed=2))
    whole = losses(tmp_path, batch=4, accumulation=1)
    assert losses(tmp_path, batch=1, accumulation=4) == pytest.approx(whole, rel=1e-4)
    assert whole[-1] < whole[0]
