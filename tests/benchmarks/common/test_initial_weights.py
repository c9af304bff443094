"""Checkpoints of PyTorch are converted once, without running what they hold; cases name what is to be done."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.numpy import save

from benchmarks.common.conversion import convert
from benchmarks.common.initial_weights import read_weights
from benchmarks.common.torch_checkpoint import imported, read_torch_checkpoint, unwrapped
from utils.errors import FlagPerfError

WEIGHTS = {"word.weight": torch.arange(6.0).reshape(2, 3), "half": torch.tensor([1.5, -2.0]).bfloat16()}

QUANTISED = torch.quantize_per_tensor(torch.ones(2), scale=0.1, zero_point=0, dtype=torch.qint8)


def converted(source: Path, target: Path | None = None) -> Path:
    return convert(source, target, lambda path: read_torch_checkpoint(path, unwrapped))


class Scaler:
    """What DeepSpeed leaves beside the weights: an object of a class that is not here."""

    def __init__(self) -> None:
        self.scale = 2.0**16


class Command:
    """An object that runs a command where it is read without care."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return subprocess.check_call, (["touch", str(self.path)],)


def contents(folder: Path) -> dict[str, Any]:
    """What training programs save: bare weights, wrapped ones, with other things beside."""
    wrapped = {f"module.{name}": tensor for name, tensor in WEIGHTS.items()}
    return {
        "bare": WEIGHTS,
        "deepspeed": {
            "module": wrapped,
            "optimizer": {"loss_scaler": Scaler(), "overflow": False},
            "args": argparse.Namespace(lr=1e-4, folder=Path()),
            "random_rng_state": random.getstate(),
            "np_rng_state": np.random.RandomState(1).get_state(),
            "csr_tensor_module_names": set(),
        },
        "flagperf": {"model": {"module": wrapped}, "step": 7},
        "evil": {"model": WEIGHTS, "more": Command(folder / "was_run")},
    }


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "before 1.6"])
@pytest.mark.parametrize("form", ["bare", "deepspeed", "flagperf", "evil"])
def test_the_weights_are_read_and_nothing_is_run(tmp_path: Path, form: str, zipped: bool) -> None:
    source = tmp_path / "states.pt"
    torch.save(contents(tmp_path)[form], source, _use_new_zipfile_serialization=zipped)
    target = converted(source)
    assert target == tmp_path / "states.safetensors"
    for framework in ("pt", "np"):
        tensors = read_weights(target, model="toy", framework=framework).tensors
        assert {name: np.asarray(tensor).tolist() for name, tensor in tensors.items()} == {
            "word.weight": [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]],
            "half": [1.5, -2.0],
        }
        assert {str(tensor.dtype).removeprefix("torch.") for tensor in tensors.values()} == {"float32"}
    assert not (tmp_path / "was_run").exists()


def test_a_harmful_file_does_harm_where_it_is_read_without_care(tmp_path: Path) -> None:
    """So that the test above can fail."""
    torch.save(contents(tmp_path)["evil"], tmp_path / "states.pt")
    torch.load(tmp_path / "states.pt", weights_only=False)
    assert (tmp_path / "was_run").exists()


def test_the_file_says_where_it_came_from(tmp_path: Path) -> None:
    source = tmp_path / "states.pt"
    torch.save({"model": {f"module.{name}": tensor for name, tensor in WEIGHTS.items()}}, source)
    with safe_open(converted(source), framework="np") as file:
        metadata = file.metadata()
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    assert json.loads(metadata["converted_from"]) == [f"states.pt sha256:{digest}"]
    assert json.loads(metadata["original_names"]) == {
        "half": "module.half",
        "word.weight": "module.word.weight",
    }


def test_a_file_that_is_there_is_kept(tmp_path: Path) -> None:
    source, other = tmp_path / "states.pt", tmp_path / "other.pt"
    torch.save(WEIGHTS, source)
    torch.save({"word.weight": torch.zeros(1)}, other)
    target = converted(source)
    before = (target.read_bytes(), target.stat().st_mtime_ns)
    assert converted(source) == target, "made from the same file: nothing to do"
    with pytest.raises(FlagPerfError, match="was not converted from this checkpoint"):
        converted(other, target)
    assert (target.read_bytes(), target.stat().st_mtime_ns) == before
    target.write_text("mine")
    with pytest.raises(FlagPerfError, match="is there and cannot be read"):
        converted(source)
    assert target.read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.pt", "states.pt", "states.safetensors"]


def test_it_is_written_through_no_link_that_others_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FAKE: writes as safetensors did before 0.8, which follows links."""
    (tmp_path / "own").write_text("precious")
    (tmp_path / f"states.safetensors.partial-{os.getpid()}").symlink_to(tmp_path / "own")
    monkeypatch.setattr(
        "benchmarks.common.conversion.save_file",
        lambda tensors, path, metadata: Path(path).write_bytes(save(tensors, metadata)),
    )
    torch.save(WEIGHTS, tmp_path / "states.pt")
    assert read_weights(converted(tmp_path / "states.pt"), model="toy", framework="np").tensors
    assert (tmp_path / "own").read_text() == "precious"


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    torch.save(WEIGHTS, tmp_path / "states.pt")
    with pytest.raises(FlagPerfError, match="cannot be written"):
        converted(tmp_path / "states.pt", tmp_path / "absent" / "states.safetensors")


@pytest.mark.parametrize(
    ("write", "why"),
    [
        (lambda path: path.write_text("no checkpoint"), ""),
        (lambda path: torch.save([1, 2], path), "it holds no state dict"),
        (lambda path: torch.save(torch.nn.Linear(2, 2), path), "it holds no state dict"),
        (lambda path: torch.save({"model": {}}, path), "it holds no state dict"),
        (lambda path: path.mkdir(), ""),
        (lambda path: None, "No such file"),
    ],
    ids=["text", "list", "module", "empty", "folder", "absent"],
)
def test_what_is_no_checkpoint_is_named(tmp_path: Path, write: Callable[[Path], object], why: str) -> None:
    write(tmp_path / "states.pt")
    with pytest.raises(FlagPerfError, match=rf"states\.pt: cannot read the checkpoint: .*{why}"):
        converted(tmp_path / "states.pt")
    assert not (tmp_path / "states.safetensors").exists()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ({"module.a": torch.ones(1), "a": torch.zeros(1)}, r"its tensors module\.a and a are both a "),
        (
            {"module": {"a": torch.ones(1)}, "model": {"module": {"b": torch.ones(1)}}},
            "under each of the keys module and model",
        ),
        ({"a": torch.eye(2).to_sparse()}, r"its tensor a \(torch\.float32, torch\.sparse_coo\) .*to_dense"),
        ({"a": QUANTISED}, r"its tensor a \(torch\.qint8, torch\.strided\) .*dequantize"),
    ],
    ids=["one name", "two wrappers", "sparse", "quantised"],
)
def test_a_state_dict_that_is_not_clear_is_refused(tmp_path: Path, content: object, why: str) -> None:
    torch.save(content, tmp_path / "states.pt")
    with pytest.raises(FlagPerfError, match=rf"(?s)states\.pt: cannot read the checkpoint: .*{why}"):
        converted(tmp_path / "states.pt")
    assert not (tmp_path / "states.safetensors").exists()


def test_a_wrapper_without_tensors_is_no_choice(tmp_path: Path) -> None:
    torch.save({"module": {"version": 1}, "model": WEIGHTS}, tmp_path / "states.pt")
    assert set(read_torch_checkpoint(tmp_path / "states.pt").tensors) == set(WEIGHTS)


def test_a_package_that_is_missing_is_named_with_its_remedy() -> None:
    with pytest.raises(FlagPerfError, match=r"(?s)read by no_such_module.*pip install the_package"):
        imported("no_such_module", "the_package")


COMMAND = r"python3 -m benchmarks\.toy\.prepare --convert-checkpoint"


@pytest.mark.parametrize(
    ("there", "configured", "remedy"),
    [
        (["a.pt"], "a.safetensors", rf"{COMMAND} \S*/a\.pt$"),
        (["a.pt"], "a.pt", rf'{COMMAND} \S*/a\.pt; set init_checkpoint .*"a\.safetensors"'),
        (["a.ckpt-28.index"], "a.ckpt-28.safetensors", rf"{COMMAND} \S*/a\.ckpt-28\.index$"),
        (["a.ckpt-28.index"], "a.ckpt-28", rf'{COMMAND} \S*/a\.ckpt-28\.index; .*"a\.ckpt-28\.safetensors"'),
        (["folder/"], "folder", rf'{COMMAND} \S*/folder; set init_checkpoint .*"folder\.safetensors"'),
        (["a.pt", "a.safetensors"], "a.pt", r'-> set init_checkpoint .*"a\.safetensors"$'),
        (["model.safetensors"], "modell.safetensors", r"did you mean model\.safetensors\?"),
        ([], "absent/a.safetensors", "put it there"),
    ],
)
def test_a_case_says_what_to_do(tmp_path: Path, there: list[str], configured: str, remedy: str) -> None:
    for name in there:
        (tmp_path / name).mkdir() if name.endswith("/") else (tmp_path / name).touch()
    with pytest.raises(FlagPerfError, match=rf"(?s)cannot read the checkpoint: .*{remedy}"):
        read_weights(tmp_path / configured, model="toy", framework="pt")


def test_a_converted_file_that_is_cut_short_is_named(tmp_path: Path) -> None:
    torch.save(WEIGHTS, tmp_path / "a.pt")
    path = converted(tmp_path / "a.pt")
    path.write_bytes(path.read_bytes()[:-8])
    for framework in ("pt", "np"):
        with pytest.raises(FlagPerfError, match=r"a\.safetensors: cannot read the checkpoint"):
            read_weights(path, model="toy", framework=framework)
