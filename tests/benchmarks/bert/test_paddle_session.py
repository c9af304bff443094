"""One rank's run from its arguments to FINISHED: the real Paddle engine on the tiny BERT case."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.driver.arguments import LaunchArguments
from run_benchmarks.frameworks import open_framework
from run_benchmarks.frameworks.base import LaunchJob
from tests.benchmarks.bert.shard_files import write_data
from tests.benchmarks.driver.ranks import (
    TRAINING,
    arguments,
    command_line,
    environment,
    run_here,
    values_of,
)
from tests.ports import free_port
from utils.errors import FlagPerfError
from utils.events import Event, read_events

PADDLE = TRAINING / "benchmarks" / "bert" / "paddle"
PATIENCE_S = 120
# As reference.md names them: the PyTorch engine's are the same.
RAW_VALUES = {
    "e2e_time", "init_time", "raw_train_time", "eval_time", "data_wait_time", "no_eval_time", "pure_compute_time",
    "time_to_target", "num_trained_samples", "num_trained_tokens", "global_steps", "world_size",
    "global_batch_size", "precision", "converged", "final_loss", "final_mlm_accuracy", "metric", "target",
    "model_flops_per_sample", "flops_formula", "mem_allocated_bytes", "mem_reserved_bytes", "mem_total_bytes",
    "training_sequences_per_second", "p_whole", "p_train", "p_core",
}  # fmt: skip

# What the tiny case of the PyTorch tests leaves to that case's own _base.py.
SMALL_TASK = {
    "optimizer": "adamw",
    "learning_rate": 0.01,
    "warmup_steps": 0,
    "decay_steps": 20,
    "eval_interval_samples": None,
    "eval_iter_start_samples": 0,
}


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_data(tmp_path_factory.mktemp("data"))


def _arguments(folder: Path, data_dir: Path, extern: Path | None = None, **settings: Any) -> LaunchArguments:
    task = {**SMALL_TASK, **settings}
    return replace(arguments(folder, data_dir, extern, **task), case_dir=PADDLE)


def _launch(logs: Path, launch: LaunchArguments, nproc: int) -> tuple[int, list[list[Event]]]:
    """Several ranks by the launcher, as in a container; the exit code and each rank's events."""
    logs.mkdir()
    job = LaunchJob(
        1,
        nproc,
        "127.0.0.1",
        free_port(),
        str(logs),
        tuple(command_line(launch)[2:]),
        command_line(launch)[0],
    )
    completed = subprocess.run(
        open_framework("paddle").launch_argv(job, 0),
        env=environment(),
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return completed.returncode, [read_events(logs / f"rank{rank}.out.log") for rank in range(nproc)]


def _losses(events: Any) -> list[float]:
    return [value["loss"] for value in values_of(events, "STEP_END")]


def test_a_run_writes_every_event_and_every_raw_value(tmp_path: Path, data_dir: Path, capsys: Any) -> None:
    events = run_here(capsys, _arguments(tmp_path, data_dir))
    names = [event.name for event in events]
    assert names[:7] == [
        "INIT_START", "HOOKS", "INIT_EVALUATION", "INIT_END", "TRAIN_START", "EPOCH_BEGIN", "STEP_BEGIN",
    ]  # fmt: skip
    assert names[-4:] == ["EVALUATE", "EPOCH_END", "TRAIN_END", "FINISHED"]
    versions = events[0].value["versions"]
    assert versions.pop("paddle") and versions == {
        "cuda": None,
        "cudnn": None,
        "nccl": None,
        "collectives": "gloo",
    }
    finished = events[-1].value
    assert finished.keys() >= RAW_VALUES
    assert finished["num_trained_samples"] == 160
    assert finished["mem_total_bytes"] is None
    assert finished["e2e_time"] >= finished["init_time"] + finished["raw_train_time"]
    assert finished["p_whole"] <= finished["p_train"] <= finished["p_core"]
    assert finished["final_mlm_accuracy"] == values_of(events, "EVALUATE")[-1]["mlm_accuracy"]
    losses = _losses(events)
    assert losses[-1] < losses[0] - 0.5


def test_the_same_task_as_on_pytorch(tmp_path: Path, data_dir: Path, capsys: Any) -> None:
    """Whatever is not about the framework is the same: samples, tokens, FLOPs, baseline, epochs."""
    ours = run_here(capsys, _arguments(tmp_path / "paddle", data_dir))
    theirs = run_here(
        capsys, arguments(tmp_path / "pytorch", data_dir, optimizer="adamw", learning_rate=0.01)
    )
    assert [event.name for event in ours] == [event.name for event in theirs]
    for name in (
        "num_trained_samples",
        "num_trained_tokens",
        "model_flops_per_sample",
        "flops_formula",
        "baseline",
        "metric",
    ):
        assert values_of(ours, "FINISHED")[0][name] == values_of(theirs, "FINISHED")[0][name], name


def test_the_same_seed_gives_the_same_run(tmp_path: Path, data_dir: Path, capsys: Any) -> None:
    runs = [_losses(run_here(capsys, _arguments(tmp_path, data_dir, seed=seed))) for seed in (7, 7, 8)]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


def test_accumulation_equals_a_big_batch(tmp_path: Path, data_dir: Path, capsys: Any) -> None:
    # so long an epsilon that the optimizer feels the gradients' scale
    scale = {"epsilon": 0.1, "max_grad_norm": None}
    big = run_here(capsys, _arguments(tmp_path, data_dir, train_batch_size=12, **scale))
    parts = {"train_batch_size": 4, "gradient_accumulation_steps": 3}
    small = run_here(capsys, _arguments(tmp_path, data_dir, **parts, **scale))
    assert _losses(small) == pytest.approx(_losses(big), rel=2e-4)
    assert values_of(small, "FINISHED")[0]["global_batch_size"] == 12


HOOKS = """
import paddle
def create_optimizer(config, model):
    return paddle.optimizer.SGD(config.driver.learning_rate, parameters=model.parameters())
"""


def test_a_vendor_replaces_hooks(tmp_path: Path, data_dir: Path, capsys: Any) -> None:
    extern = tmp_path / "extern"
    extern.mkdir()
    (extern / "hooks.py").write_text(HOOKS)
    plain = _losses(run_here(capsys, _arguments(tmp_path, data_dir, tmp_path / "absent", max_steps=3)))
    hooked = _losses(run_here(capsys, _arguments(tmp_path, data_dir, extern, max_steps=3)))
    assert hooked[0] == plain[0]
    assert hooked[2] != plain[2]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"precision": "bf16"}, "nothing that paddle on cpu computes in"),
        ({"precision": "fp16"}, "write 'fp32' or 'auto'"),
        ({"torch_compile": True}, "write False"),
        ({"optimizer": "lamb"}, "write 'adamw'"),
        ({"init_checkpoint": "absent.safetensors"}, "cannot read the checkpoint"),
        ({"vocab_size": 20}, "ids below 20"),
    ],
)
def test_what_cannot_be_done_is_refused(
    tmp_path: Path, data_dir: Path, capsys: Any, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(FlagPerfError, match=message):
        run_here(capsys, _arguments(tmp_path, data_dir, **settings))


def test_a_device_that_is_not_there_is_named(tmp_path: Path, data_dir: Path, capsys: Any) -> None:
    with pytest.raises(FlagPerfError, match="Paddle sees no gpu device"):
        run_here(capsys, replace(_arguments(tmp_path, data_dir), vendor="nvidia"))


def test_a_crash_leaves_its_traceback_and_a_bad_exit_code(tmp_path: Path, data_dir: Path) -> None:
    launch = _arguments(tmp_path / "config", data_dir, learning_rate=1e30, max_grad_norm=None)
    code, events = _launch(tmp_path / "logs", launch, 2)
    assert code == 1
    text = "".join((tmp_path / "logs" / f"rank{rank}.out.log").read_text() for rank in (0, 1))
    assert "training has diverged" in text
    assert not values_of(events[0], "FINISHED")


def test_a_rank_without_peers_fails_after_the_timeout(tmp_path: Path, data_dir: Path) -> None:
    launch = _arguments(tmp_path / "config", data_dir, dist_timeout_seconds=2.0)
    port = str(free_port())
    variables = {
        "RANK": "1",
        "WORLD_SIZE": "2",
        "PADDLE_TRAINER_ID": "1",
        "PADDLE_TRAINERS_NUM": "2",
        "PADDLE_MASTER": f"127.0.0.1:{port}",
    }
    completed = subprocess.run(
        command_line(launch),
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert completed.returncode == 1
    assert f"127.0.0.1:{port}: rank 1 of 2 cannot join the gloo process group: no answer" in completed.stderr
    assert open_framework("paddle").is_secondary_failure(completed.stderr)


def test_auto_is_the_one_precision_that_there_is(tmp_path: Path, data_dir: Path, capsys: Any) -> None:
    events = run_here(capsys, _arguments(tmp_path, data_dir, max_steps=2, precision="auto"))
    finished = values_of(events, "FINISHED")[0]
    assert (finished["precision"], finished["precision_reason"]) == (
        "fp32",
        "paddle computes in nothing else on a CPU",
    )
