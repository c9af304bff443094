"""One rank's run from its arguments to FINISHED: the real engine on the tiny BERT case."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from run_benchmarks.results.symptoms import class_in
from tests.benchmarks.bert.shard_files import random_rows, write_data, write_shard
from tests.benchmarks.driver.ranks import (
    arguments,
    command_line,
    environment,
    launch_ranks,
    run_here,
    values_of,
)
from tests.ports import free_port
from utils.errors import FlagPerfError
from utils.records import FailureClass

RUNTIMES = ("cuda", "hip", "xpu", "cann", "musa")
RAW_VALUES = {
    "e2e_time", "init_time", "raw_train_time", "eval_time", "data_wait_time", "no_eval_time", "pure_compute_time",
    "time_to_target", "num_trained_samples", "num_trained_tokens", "global_steps", "world_size",
    "global_batch_size", "precision", "converged", "final_loss", "final_mlm_accuracy", "metric", "target",
    "model_flops_per_sample", "flops_formula", "mem_allocated_bytes", "mem_reserved_bytes", "mem_total_bytes",
    "training_sequences_per_second", "p_whole", "p_train", "p_core",
}  # fmt: skip


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_data(tmp_path_factory.mktemp("data"))


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    """The run sets the number of threads; other tests get theirs back."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def _losses(events: Any) -> list[float]:
    return [value["loss"] for value in values_of(events, "STEP_END")]


def test_a_run_writes_every_event_and_every_raw_value(tmp_path: Path, data_dir: Path, capsys: Any) -> None:
    events = run_here(capsys, arguments(tmp_path, data_dir))
    names = [event.name for event in events]
    assert names[:7] == [
        "INIT_START", "HOOKS", "INIT_EVALUATION", "INIT_END", "TRAIN_START", "EPOCH_BEGIN", "STEP_BEGIN",
    ]  # fmt: skip
    assert names[-4:] == ["EVALUATE", "EPOCH_END", "TRAIN_END", "FINISHED"]
    assert names.count("STEP_END") == 20
    assert [value["epoch"] for value in values_of(events, "EPOCH_BEGIN")] == [0, 1, 2]

    finished = events[-1].value
    assert finished.keys() >= RAW_VALUES
    assert finished["num_trained_samples"] == 160
    assert 160 * 6 <= finished["num_trained_tokens"] <= 160 * 16
    assert finished["e2e_time"] >= finished["init_time"] + finished["raw_train_time"]
    assert finished["p_whole"] <= finished["p_train"] <= finished["p_core"]
    assert finished["final_mlm_accuracy"] == values_of(events, "EVALUATE")[-1]["mlm_accuracy"]
    assert 0.2 < finished["baseline"] < 0.6  # four labels, drawn alike
    started = events[0].value
    assert started["config"]["hidden_size"] == 16
    assert "hidden_size" in started["changed"]
    assert "learning_rate" not in started["changed"]
    versions = started["versions"]
    assert versions["torch"] == torch.__version__ and versions["collectives"] == "gloo"
    assert versions.keys() == {"torch", *RUNTIMES, "cudnn", "nccl", "collectives"}


def test_garbage_is_collected_again_once_training_begins(tmp_path: Path, data_dir: Path, capsys: Any) -> None:
    """The script puts it off while modules are imported; what there is by then is never looked through."""
    gc.disable()
    try:
        run_here(capsys, arguments(tmp_path, data_dir, max_steps=1))
        assert gc.isenabled() and gc.get_freeze_count() > 0
    finally:
        gc.enable()
        gc.unfreeze()


def test_training_learns(tmp_path: Path, data_dir: Path, capsys: Any) -> None:
    losses = _losses(run_here(capsys, arguments(tmp_path, data_dir)))
    assert losses[-1] < losses[0] - 0.5


def test_the_same_seed_gives_the_same_run(tmp_path: Path, data_dir: Path, capsys: Any) -> None:
    runs = [_losses(run_here(capsys, arguments(tmp_path, data_dir, seed=seed))) for seed in (7, 7, 8)]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


@pytest.fixture
def sgd(tmp_path: Path) -> Path:
    """A vendor's folder whose optimizer feels the gradients' scale; LAMB and AdamW do not."""
    extern = tmp_path / "sgd"
    extern.mkdir()
    (extern / "optimizer.py").write_text(
        "import torch\n"
        "def create_optimizer(config, model):\n"
        "    return torch.optim.SGD(model.parameters(), lr=config.driver.learning_rate)\n"
    )
    return extern


SGD = {"learning_rate": 0.3, "max_grad_norm": None}


def test_accumulation_equals_a_big_batch(tmp_path: Path, data_dir: Path, capsys: Any, sgd: Path) -> None:
    big = run_here(capsys, arguments(tmp_path, data_dir, sgd, train_batch_size=12, **SGD))
    parts = {"train_batch_size": 4, "gradient_accumulation_steps": 3}
    small = run_here(capsys, arguments(tmp_path, data_dir, sgd, **parts, **SGD))
    assert _losses(small) == pytest.approx(_losses(big), rel=2e-5)
    assert values_of(small, "FINISHED")[0]["global_batch_size"] == 12


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_mixed_precision_follows_fp32(tmp_path: Path, data_dir: Path, capsys: Any, precision: str) -> None:
    full = run_here(capsys, arguments(tmp_path, data_dir, max_steps=10))
    mixed = run_here(capsys, arguments(tmp_path, data_dir, max_steps=10, precision=precision))
    assert _losses(mixed) == pytest.approx(_losses(full), rel=0.03)
    assert _losses(mixed) != _losses(full)
    scales = [value.get("loss_scale") for value in values_of(mixed, "STEP_END")]
    assert (scales[-1] is not None) == (precision == "fp16")


def test_training_stops_at_the_target(tmp_path: Path, data_dir: Path, capsys: Any) -> None:
    events = run_here(capsys, arguments(tmp_path, data_dir, target_mlm_accuracy=0.0))
    finished = values_of(events, "FINISHED")[0]
    assert finished["converged"]
    assert finished["global_steps"] == 10
    assert 0 < finished["time_to_target"] <= finished["raw_train_time"]


HOOKS = """
import torch
from .more import CALLS
def create_optimizer(config, model):
    CALLS.append("create_optimizer")
    return torch.optim.SGD(model.parameters(), lr=config.driver.learning_rate)
def _helper(): ...
"""
MORE_HOOKS = """
CALLS = []
def convert_model(config, model):
    CALLS.append("convert_model")
    model.marked = True
    return model
def backward(config, loss, optimizer, scaler):
    CALLS.append("backward")
    loss.backward()
"""


def test_a_vendor_replaces_hooks(tmp_path: Path, data_dir: Path, capsys: Any) -> None:
    extern = tmp_path / "extern"
    extern.mkdir()
    (extern / "__init__.py").write_text(HOOKS)
    (extern / "more.py").write_text(MORE_HOOKS)
    plain = _losses(run_here(capsys, arguments(tmp_path, data_dir, tmp_path / "absent", max_steps=3)))
    hooked = _losses(run_here(capsys, arguments(tmp_path, data_dir, extern, max_steps=3)))
    assert hooked[0] == plain[0]
    assert hooked[2] != plain[2]
    (more,) = (name for name in sys.modules if name.startswith("flagperf_extern") and name.endswith(".more"))
    calls = sys.modules[more].CALLS
    assert calls == ["convert_model", "create_optimizer", "backward", "backward", "backward"]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a.py": "def create_optimiser(config, model): ..."}, "did you mean create_optimizer"),
        ({"a.py": "def backward(*a): ...", "b.py": "def backward(*a): ..."}, "backward is defined in"),
    ],
)
def test_bad_hooks_are_named(
    tmp_path: Path, data_dir: Path, capsys: Any, files: dict[str, str], message: str
) -> None:
    extern = tmp_path / "extern"
    extern.mkdir()
    for name, text in files.items():
        (extern / name).write_text(text)
    with pytest.raises(FlagPerfError, match=message):
        run_here(capsys, arguments(tmp_path, data_dir, extern))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"vocab_size": 20}, r"ids below 20"),
        ({"max_position_embeddings": 8}, "the model takes 8 tokens"),
        ({"init_checkpoint": "absent.safetensors"}, "cannot read the checkpoint"),
    ],
)
def test_data_that_do_not_fit_the_model_are_named(
    tmp_path: Path, data_dir: Path, capsys: Any, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(FlagPerfError, match=message):
        run_here(capsys, arguments(tmp_path, data_dir, **settings))


def test_bad_shards_are_named(tmp_path: Path, capsys: Any) -> None:
    empty = write_data(tmp_path / "empty", shards=())
    with pytest.raises(FlagPerfError, match="2048_shards_uncompressed"):
        run_here(capsys, arguments(tmp_path, empty))
    cut = write_data(tmp_path / "cut")
    shard = next((cut / "2048_shards_uncompressed").glob("part_1*"))
    shard.write_bytes(shard.read_bytes()[:300])
    with pytest.raises(FlagPerfError, match="part_1"):
        run_here(capsys, arguments(tmp_path, cut))
    lacking = write_data(tmp_path / "lacking")
    rows = {key: array for key, array in random_rows(4, 0).items() if key != "segment_ids"}
    write_shard(lacking / "2048_shards_uncompressed" / "part_0.hdf5", rows)
    with pytest.raises(FlagPerfError, match="segment_ids"):
        run_here(capsys, arguments(tmp_path, lacking))


def test_two_ranks_train_as_one(tmp_path: Path, data_dir: Path, capsys: Any, sgd: Path) -> None:
    """The same global batch: the same losses, metrics and counters, one FINISHED, samples counted once."""
    one = run_here(capsys, arguments(tmp_path / "one", data_dir, sgd, **SGD))
    halves = {"train_batch_size": 2, "gradient_accumulation_steps": 2}
    code, (first, second) = launch_ranks(
        tmp_path / "logs", arguments(tmp_path / "two", data_dir, sgd, **halves, **SGD), 2
    )
    assert code == 0
    assert _losses(first) == pytest.approx(_losses(one), rel=2e-5)
    assert _losses(second) == _losses(first)
    assert [event.name for event in first] == [event.name for event in one]
    assert [event.name for event in second] == [event.name for event in one][:-1]  # all but FINISHED
    assert {event.rank for event in second} == {1}

    alone, together = values_of(one, "FINISHED")[0], values_of(first, "FINISHED")[0]
    assert together["world_size"] == 2
    for name in (
        "num_trained_samples",
        "num_trained_tokens",
        "global_steps",
        "global_batch_size",
        "baseline",
    ):
        assert together[name] == alone[name], name
    assert together["model_flops_per_sample"] == pytest.approx(alone["model_flops_per_sample"])
    for name in ("mlm_accuracy", "nsp_accuracy", "eval_loss"):  # 11 samples on 2 ranks: each once
        assert together[f"final_{name}"] == pytest.approx(alone[f"final_{name}"], abs=0.02), name
    before, after = (values_of(events, "INIT_EVALUATION")[0] for events in (one, first))
    assert before["mlm_accuracy"] == after["mlm_accuracy"]
    assert before["eval_loss"] == pytest.approx(after["eval_loss"], rel=1e-5)


def test_a_crash_leaves_its_traceback_and_a_bad_exit_code(tmp_path: Path, data_dir: Path) -> None:
    launch = arguments(
        tmp_path / "config", data_dir, learning_rate=1e30, optimizer="adamw", max_grad_norm=None
    )
    code, events = launch_ranks(tmp_path / "logs", launch, 2)
    assert code != 0
    # whichever rank fails first, the other is ended with it
    text = "".join(log.read_text() for log in (tmp_path / "logs").glob("rank*.out.log"))
    assert "Traceback" in text
    assert "training has diverged" in text
    assert class_in(text) is FailureClass.DIVERGED
    assert not values_of(events[0], "FINISHED")


def test_a_rank_without_peers_fails_after_the_timeout(tmp_path: Path, data_dir: Path) -> None:
    launch = arguments(tmp_path / "config", data_dir, dist_timeout_seconds=2.0)
    port = str(free_port())
    variables = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    completed = subprocess.run(
        command_line(launch),
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert completed.returncode == 1
    assert f"127.0.0.1:{port}: rank 1 of 2 cannot join the gloo process group" in completed.stderr
