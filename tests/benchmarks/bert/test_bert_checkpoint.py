"""Initial checkpoints of every origin give the model of transformers, on both frameworks; wrong ones are named."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import paddle
import pytest
import torch
from transformers import BertConfig as TheirConfig
from transformers import BertForPreTraining as TheirModel

import benchmarks
from benchmarks.bert.arrays import PretrainingArrays, pretraining_arrays
from benchmarks.bert.paddle import case as paddle_case
from benchmarks.bert.paddle.inputs import make_inputs as paddle_inputs
from benchmarks.bert.prepare.originals import read_original
from benchmarks.bert.pytorch import case as torch_case
from benchmarks.bert.pytorch.inputs import make_inputs as torch_inputs
from benchmarks.common.conversion import convert
from benchmarks.driver.paddle.case import Context as PaddleContext
from benchmarks.driver.pytorch.case import Context as TorchContext
from tests.benchmarks.bert.make_tf_checkpoint import FOLDER, weights
from tests.benchmarks.bert.shard_files import TINY_MODEL, VOCABULARY, random_rows
from tests.benchmarks.bert.their_bert import GELU, their_model
from utils.errors import FlagPerfError, ProblemsError
from utils.parameters import TrainingSettings

TRAINING = Path(benchmarks.__file__).parents[1]
TF_FILES = ("model.ckpt-28.index", "model.ckpt-28.data-00000-of-00001")
Logits = tuple[Any, Any]  # of the masked tokens (M, vocabulary) and of the next sentences (B, 2)


def _with_torch(data_dir: Path, arrays: PretrainingArrays, settings: dict[str, Any]) -> Logits:
    context = TorchContext(data_dir, TrainingSettings(max_steps=1), settings, torch.device("cpu"))
    model = torch_case.Case(context).build_model().eval()
    with torch.no_grad():
        masked, pairs = model(torch_inputs(arrays, ragged=False))
    return masked.numpy(), pairs.numpy()


def _with_paddle(data_dir: Path, arrays: PretrainingArrays, settings: dict[str, Any]) -> Logits:
    driver = TrainingSettings(max_steps=1, precision="fp32")
    model = paddle_case.Case(PaddleContext(data_dir, driver, settings, "cpu")).build_model()
    model.eval()
    with paddle.no_grad():
        masked, pairs = model(paddle_inputs(arrays))
    return masked.numpy(), pairs.numpy()


FRAMEWORKS = {"pytorch": _with_torch, "paddle": _with_paddle}


@pytest.fixture(params=list(FRAMEWORKS))
def logits_of(request: pytest.FixtureRequest) -> Callable[..., Logits]:
    """What the case of one framework, started from the converted checkpoint `path`, answers to a batch."""

    def logits(path: Path, **settings: Any) -> Logits:
        arrays = pretraining_arrays(random_rows(6, seed=5))
        return FRAMEWORKS[request.param](
            path.parent, arrays, {**TINY_MODEL, "init_checkpoint": path.name, **settings}
        )

    return logits


def converted(source: Path) -> Path:
    return convert(source, None, read_original)


def _expected(model: TheirModel) -> Logits:
    rows = {key: torch.from_numpy(array).long() for key, array in random_rows(6, seed=5).items()}
    with torch.no_grad():
        answer = model(rows["input_ids"], rows["input_mask"], rows["segment_ids"])
    places = rows["masked_lm_positions"]
    sample, number = torch.nonzero(places, as_tuple=True)
    return answer.prediction_logits[
        sample, places[sample, number]
    ].numpy(), answer.seq_relationship_logits.numpy()


def _assert_equal(ours: Logits, expected: Logits) -> None:
    for one, other in zip(ours, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def _of_tensorflow() -> TheirModel:
    """transformers' model with the weights of the TensorFlow checkpoint, each put where its name says."""
    tensors = {name: torch.from_numpy(array) for name, array in weights().items()}
    model: Any = TheirModel(TheirConfig(**TINY_MODEL, hidden_act=GELU))
    model.train(False)

    def dense(module: Any, name: str) -> None:
        module.weight.copy_(tensors.pop(f"{name}/kernel").T)
        module.bias.copy_(tensors.pop(f"{name}/bias"))

    def norm(module: Any, name: str) -> None:
        module.weight.copy_(tensors.pop(f"{name}/LayerNorm/gamma"))
        module.bias.copy_(tensors.pop(f"{name}/LayerNorm/beta"))

    with torch.no_grad():
        for table in ("word", "position", "token_type"):
            name = f"{table}_embeddings"
            getattr(model.bert.embeddings, name).weight.copy_(tensors.pop(f"bert/embeddings/{name}"))
        norm(model.bert.embeddings.LayerNorm, "bert/embeddings")
        for number, layer in enumerate(model.bert.encoder.layer):
            prefix = f"bert/encoder/layer_{number}"
            for part in ("query", "key", "value"):
                dense(getattr(layer.attention.self, part), f"{prefix}/attention/self/{part}")
            dense(layer.attention.output.dense, f"{prefix}/attention/output/dense")
            norm(layer.attention.output.LayerNorm, f"{prefix}/attention/output")
            dense(layer.intermediate.dense, f"{prefix}/intermediate/dense")
            dense(layer.output.dense, f"{prefix}/output/dense")
            norm(layer.output.LayerNorm, f"{prefix}/output")
        dense(model.bert.pooler.dense, "bert/pooler/dense")
        dense(model.cls.predictions.transform.dense, "cls/predictions/transform/dense")
        norm(model.cls.predictions.transform.LayerNorm, "cls/predictions/transform")
        model.cls.predictions.bias.copy_(tensors.pop("cls/predictions/output_bias"))
        model.cls.seq_relationship.weight.copy_(tensors.pop("cls/seq_relationship/output_weights"))
        model.cls.seq_relationship.bias.copy_(tensors.pop("cls/seq_relationship/output_bias"))
    assert not tensors
    built: TheirModel = model
    return built


@pytest.fixture(scope="module")
def tensorflow_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the checkpoint `model.ckpt-28` that TensorFlow wrote."""
    folder = tmp_path_factory.mktemp("tensorflow")
    for file in TF_FILES:
        shutil.copy(FOLDER / file, folder / file)
    return folder


def convert_by_command(source: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """As users convert TensorFlow's: by the command, in an environment that has TensorFlow."""
    python = os.environ.get("FLAGPERF_TEST_TENSORFLOW_PYTHON")
    if not python and importlib.util.find_spec("tensorflow") is None:
        pytest.skip(
            "no TensorFlow here: ./test.sh installs one, and names it in FLAGPERF_TEST_TENSORFLOW_PYTHON"
        )
    command = [python or sys.executable, "-m", "benchmarks.bert.prepare", "--convert-checkpoint", str(source)]
    environment = {**os.environ, "PYTHONPATH": str(TRAINING), "TF_CPP_MIN_LOG_LEVEL": "3"}
    return subprocess.run(
        [*command, *more], env=environment, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.fixture(scope="module")
def of_tensorflow(tensorflow_files: Path) -> Path:
    """What the command makes of it."""
    done = convert_by_command(tensorflow_files / "model.ckpt-28")
    assert done.returncode == 0, done.stderr
    return tensorflow_files / "model.ckpt-28.safetensors"


def test_a_tensorflow_checkpoint_gives_its_model(
    logits_of: Callable[..., Logits], of_tensorflow: Path
) -> None:
    """Its optimizer slots and its step are no weights."""
    _assert_equal(logits_of(of_tensorflow), _expected(_of_tensorflow()))


def test_a_tensorflow_checkpoint_that_is_converted_is_left_as_it_is(of_tensorflow: Path) -> None:
    before = of_tensorflow.stat().st_mtime_ns
    again = convert_by_command(of_tensorflow.with_name("model.ckpt-28.index"))
    assert again.returncode == 0, "made from the same files: nothing to do"
    assert of_tensorflow.stat().st_mtime_ns == before


def test_a_tensorflow_checkpoint_that_is_damaged_is_named(tensorflow_files: Path, tmp_path: Path) -> None:
    shutil.copytree(tensorflow_files, tmp_path, dirs_exist_ok=True)
    index, data = (tmp_path / file for file in TF_FILES)
    data.write_bytes(data.read_bytes()[:-100] + bytes(100))
    done = convert_by_command(tmp_path / "model.ckpt-28", "--out", str(tmp_path / "new.safetensors"))
    assert (done.returncode, f"{tmp_path / 'model.ckpt-28'}: cannot read the checkpoint" in done.stderr) == (
        1,
        True,
    )
    index.write_bytes(b"")
    assert convert_by_command(index, "--out", str(tmp_path / "new.safetensors")).returncode == 1
    assert not (tmp_path / "new.safetensors").exists()


def test_two_tensorflow_tensors_of_one_name_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one fake is TensorFlow's reader, for few machines have TensorFlow."""
    names = ("bert/pooler/dense/kernel", "bert/pooler/dense/gamma")
    reader = SimpleNamespace(
        get_variable_to_shape_map=lambda: dict.fromkeys(names, (1, 1)),
        get_tensor=lambda name: np.ones((1, 1)),
    )
    fake = SimpleNamespace(
        train=SimpleNamespace(load_checkpoint=lambda prefix: reader), errors=SimpleNamespace(OpError=OSError)
    )
    monkeypatch.setitem(sys.modules, "tensorflow", fake)
    (tmp_path / "model.ckpt.index").touch()
    with pytest.raises(
        FlagPerfError, match=rf"{names[0]} and {names[1]} are both bert\.pooler\.dense\.weight"
    ):
        read_original(tmp_path / "model.ckpt")


@dataclass(frozen=True)
class PytorchFile:
    """A form in which there are PyTorch files of BERT: how tensors are named, wrapped, saved."""

    rename: Callable[[str], str] = str
    wrap: Callable[[dict[str, Any]], Any] = dict
    options: Any = None
    rows: int = VOCABULARY


PYTORCH_FILES = {
    "state dict": PytorchFile(),
    "nvidia": PytorchFile(
        rename=lambda name: name.replace("intermediate.dense.", "intermediate.dense_act."),
        wrap=lambda weights: {"model": weights, "step": 7},
        rows=VOCABULARY + 4,  # padded to a multiple of 8
    ),
    "first transformers": PytorchFile(
        rename=lambda name: name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ),
        options={"_use_new_zipfile_serialization": False},
    ),
    "wrapped module": PytorchFile(rename=lambda name: f"module.{name}"),
}


def _save(model: TheirModel, path: Path, form: PytorchFile = PYTORCH_FILES["state dict"]) -> None:
    weights = {form.rename(name): tensor for name, tensor in model.state_dict().items()}
    for name, tensor in weights.items():
        if len(tensor) == VOCABULARY:
            weights[name] = torch.cat([tensor, torch.zeros(form.rows - VOCABULARY, *tensor.shape[1:])])
    torch.save(form.wrap(weights), path, **form.options or {})


@pytest.mark.parametrize("form", PYTORCH_FILES)
def test_a_pytorch_file_gives_its_model(tmp_path: Path, logits_of: Callable[..., Logits], form: str) -> None:
    model = their_model()
    _save(model, tmp_path / "model.ckpt-28.pt", PYTORCH_FILES[form])
    _assert_equal(logits_of(converted(tmp_path / "model.ckpt-28.pt")), _expected(model))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("kind", ["safetensors", "bin"])
def test_a_folder_of_transformers_gives_its_model(
    tmp_path: Path, logits_of: Callable[..., Logits], kind: str, dtype: str
) -> None:
    model = their_model().to(getattr(torch, dtype))
    _save_folder(model, tmp_path / "bert-large-uncased", kind)
    _assert_equal(logits_of(converted(tmp_path / "bert-large-uncased")), _expected(model.float()))


def _save_folder(model: TheirModel, folder: Path, kind: str = "safetensors") -> None:
    model.save_pretrained(folder)
    if kind == "bin":  # which transformers no longer writes itself
        (folder / "model.safetensors").unlink()
        _save(model, folder / "pytorch_model.bin", PYTORCH_FILES["first transformers"])


def test_every_tensor_that_does_not_fit_is_named_with_the_file(
    tmp_path: Path, logits_of: Callable[..., Logits]
) -> None:
    _save(their_model(), tmp_path / "model.pt")
    file = converted(tmp_path / "model.pt")
    with pytest.raises(ProblemsError) as error:
        logits_of(file, num_hidden_layers=1, intermediate_size=64)
    text = str(error.value)
    layer = "bert.encoder.layer"
    assert f"{file}: {layer}.1.output.dense.bias: is not a tensor of this model" in text
    assert f"{layer}.0.intermediate.dense.weight = (32, 16): has the wrong shape: (64, 16) is wanted" in text
    with pytest.raises(ProblemsError, match=r"bert\.encoder\.layer\.2\.output\.dense\.bias: is missing"):
        logits_of(file, num_hidden_layers=3)


def test_an_output_matrix_of_its_own_is_refused(tmp_path: Path, logits_of: Callable[..., Logits]) -> None:
    model = their_model()
    model.cls.predictions.decoder.weight = torch.nn.Parameter(torch.ones(VOCABULARY, 16))
    _save(model, tmp_path / "model.pt")
    with pytest.raises(ProblemsError, match=r"decoder\.weight: is not bert\.embeddings\.word_embeddings"):
        logits_of(converted(tmp_path / "model.pt"))


@pytest.mark.parametrize("file", ["folder/config.json", "bert_config.json"])
def test_a_config_of_another_model_is_named(
    tmp_path: Path, logits_of: Callable[..., Logits], file: str
) -> None:
    """Heads show in no tensor's shape: the model would load, and be another one."""
    _save_folder(their_model(), tmp_path / "folder")
    _save(their_model(), tmp_path / "model.pt")
    config = json.loads((tmp_path / "folder/config.json").read_text()) | {"num_attention_heads": 4}
    (tmp_path / file).write_text(json.dumps(config))
    with pytest.raises(ProblemsError, match=r"\.safetensors: num_attention_heads = 4: 2 is configured"):
        logits_of(converted(tmp_path / ("folder" if "/" in file else "model.pt")))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent", r"absent: .*none of this name"),
        ("folder", r"folder: .*this folder has none of model\.safetensors, pytorch_model\.bin"),
        ("text.pt", r"text\.pt: cannot read the checkpoint"),
        ("text.safetensors", r"text\.safetensors: cannot read the checkpoint"),
        ("list.pt", r"list\.pt: cannot read the checkpoint: it holds no state dict"),
    ],
)
def test_an_original_that_is_wrong_is_named(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "folder").mkdir()
    for file in ("text.pt", "text.safetensors"):
        (tmp_path / file).write_text("this is no checkpoint at all")
    torch.save([1, 2], tmp_path / "list.pt")
    with pytest.raises(FlagPerfError, match=message):
        convert(tmp_path / name, tmp_path / "new.safetensors", read_original)
    assert not (tmp_path / "new.safetensors").exists()


def test_a_file_that_is_cut_short_is_named(tmp_path: Path) -> None:
    model = their_model()
    _save_folder(model, tmp_path / "folder")
    _save(model, tmp_path / "new.pt")
    _save(model, tmp_path / "old.pt", PYTORCH_FILES["first transformers"])
    for name in ("folder/model.safetensors", "new.pt", "old.pt"):
        (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:-100])
        with pytest.raises(FlagPerfError, match=f"{name}: cannot read the checkpoint"):
            converted(tmp_path / name.removesuffix("/model.safetensors"))


def test_a_model_that_normalises_before_takes_no_checkpoint(
    tmp_path: Path, logits_of: Callable[..., Logits]
) -> None:
    with pytest.raises(FlagPerfError, match="pre_layer_norm = True"):
        logits_of(tmp_path / "model.safetensors", pre_layer_norm=True)


@pytest.mark.parametrize("name", ["gelu", "gelu_new", "gelu_pytorch_tanh"])
def test_the_names_of_berts_own_gelu_are_the_configured_one(
    tmp_path: Path, logits_of: Callable[..., Logits], name: str
) -> None:
    _save_folder(their_model(), tmp_path / "folder")
    config = json.loads((tmp_path / "folder/config.json").read_text()) | {"hidden_act": name}
    (tmp_path / "folder/config.json").write_text(json.dumps(config))
    path = converted(tmp_path / "folder")
    _assert_equal(logits_of(path), _expected(their_model()))
    if name != "gelu":
        with pytest.raises(ProblemsError, match=f"hidden_act = '{name}': 'gelu' is configured"):
            logits_of(path, gelu="erf")


def test_a_gelu_that_there_is_not_is_refused(tmp_path: Path, logits_of: Callable[..., Logits]) -> None:
    with pytest.raises(FlagPerfError, match="gelu = 'gelu_new' is no form of GELU"):
        logits_of(tmp_path / "model.safetensors", gelu="gelu_new")
