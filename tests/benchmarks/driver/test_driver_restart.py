"""A run that was cut off goes on from its checkpoint and reaches the loss curve of one that was not: PyTorch."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.driver import parts
from benchmarks.driver.arguments import LaunchArguments
from benchmarks.driver.parts import ENVIRONMENT_FILE, part_of
from benchmarks.driver.session import run
from tests.benchmarks.bert.shard_files import write_data
from tests.benchmarks.driver.ranks import (
    arguments,
    command_line,
    environment,
    launch_ranks,
    run_here,
    values_of,
)
from utils.checkpoints import CHECKPOINT_DIR, CONTINUE_FROM, MAY_BEGIN_ANEW
from utils.errors import FlagPerfError
from utils.events import Event, parse_line
from utils.manifest import MANIFEST_NAME

# 64 samples, 16 a step: an epoch ends after every fourth step. Dropout makes the random generators matter.
TASK: dict[str, Any] = {
    "gradient_accumulation_steps": 2,
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "max_steps": 12,
    "eval_interval_steps": 4,
    "save_steps": 3,
}
# FAKE, of the kernel: a SIGKILL in the midst of a step's second micro-batch.
KILLED = """
import os, signal
calls = 0
def backward(config, loss, optimizer, scaler):
    global calls
    calls += 1
    if calls == {at}:
        os.kill(os.getpid(), signal.SIGKILL)
    (loss if scaler is None else scaler.scale(loss)).backward()
"""
# A vendor's scaler that doubles its scale after every fourth step: its counter must come back too.
SCALER = """
import torch
def create_grad_scaler(config, device_type):
    if config.driver.precision == "fp16":
        return torch.amp.GradScaler(device_type, init_scale=64.0, growth_interval=4)
"""
# A vendor's optimizer that keeps something of its own in its state.
ODD_OPTIMIZER = """
import torch
class Odd(torch.optim.AdamW):
    def state_dict(self):
        return {**super().state_dict(), "handle": object()}
def create_optimizer(config, model):
    return Odd(model.parameters(), lr=0.01)
"""


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_data(tmp_path_factory.mktemp("data"))


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def killing_hook(folder: Path, step: int) -> Path:
    """A vendor's folder that kills its rank in the midst of `step`."""
    folder.mkdir(parents=True)
    (folder / "killed.py").write_text(KILLED.format(at=2 * step))
    return folder


def killed_run(python: str, launch: LaunchArguments, checkpoints: Path) -> str:
    """A rank of its own process, until it is killed; what it printed."""
    done = subprocess.run(
        [python, *command_line(launch)[1:]],
        env=environment(**{CHECKPOINT_DIR: str(checkpoints)}),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stdout + done.stderr
    return done.stdout


def continued_run(
    monkeypatch: Any, capsys: Any, launch: LaunchArguments, earlier: Path, own: Path
) -> list[Event]:
    """The rest of a run, in this process."""
    with monkeypatch.context() as variables:
        variables.setenv(CONTINUE_FROM, str(earlier))
        variables.setenv(CHECKPOINT_DIR, str(own))
        return run_here(capsys, launch)


def losses(events: list[Event]) -> dict[int, float]:
    """Step -> loss."""
    return {value["global_steps"]: value["loss"] for value in values_of(events, "STEP_END")}


def after(step: int, curve: dict[int, float]) -> dict[int, float]:
    """The part of a curve that comes after `step`."""
    return {number: loss for number, loss in curve.items() if number > step}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory, data_dir: Path, warm_python: str) -> Path:
    """The checkpoints of a run that was killed in its eighth step: of steps 3 and 6."""
    folder = tmp_path_factory.mktemp("saved")
    launch = arguments(folder / "cut", data_dir, killing_hook(folder / "killing", 8), **TASK)
    killed_run(warm_python, launch, folder / "earlier")
    return folder / "earlier"


@pytest.fixture
def cut(tmp_path: Path, saved: Path) -> Path:
    """The same, a copy for one test."""
    return Path(shutil.copytree(saved, tmp_path / "earlier"))


@pytest.mark.parametrize(("precision", "optimizer"), [("fp32", "lamb"), ("bf16", "adamw"), ("fp16", "adamw")])
def test_the_rest_of_a_killed_run_is_bitwise_that_of_an_unbroken_one(
    tmp_path: Path,
    data_dir: Path,
    capsys: Any,
    monkeypatch: Any,
    warm_python: str,
    precision: str,
    optimizer: str,
) -> None:
    task = {**TASK, "precision": precision, "optimizer": optimizer, "learning_rate": 0.01}
    killing, hooks = killing_hook(tmp_path / "killing", 8), tmp_path / "hooks"
    hooks.mkdir()
    for folder in (killing, hooks):
        (folder / "scaler.py").write_text(SCALER)
    whole = arguments(tmp_path / "whole", data_dir, hooks, **{**task, "save_steps": None})
    unbroken = run_here(capsys, whole)
    killed_run(warm_python, arguments(tmp_path / "cut", data_dir, killing, **task), tmp_path / "earlier")
    names = [path.name for path in sorted((tmp_path / "earlier").iterdir())]
    assert [name for name in names if name.endswith(".ckpt")] == ["step00000003.ckpt", "step00000006.ckpt"]

    launch = arguments(tmp_path / "rest", data_dir, hooks, **task)
    rest = continued_run(monkeypatch, capsys, launch, tmp_path / "earlier", tmp_path / "later")
    assert losses(rest) == after(6, losses(unbroken))
    assert values_of(rest, "EVALUATE")[-1]["eval_loss"] == values_of(unbroken, "EVALUATE")[-1]["eval_loss"]
    assert [path.name for path in (tmp_path / "later").glob("*.ckpt")] == ["step00000009.ckpt"]
    scales = [value.get("loss_scale") for value in values_of(unbroken, "STEP_END")]
    assert [value.get("loss_scale") for value in values_of(rest, "STEP_END")] == scales[6:]
    assert (len(set(scales[6:])) > 1) == (precision == "fp16")


def test_a_part_with_other_hooks_is_not_forgotten(
    tmp_path: Path, data_dir: Path, capsys: Any, monkeypatch: Any, cut: Path
) -> None:
    """What a hook made of the optimizer comes with the checkpoint: also with that of the part after it."""
    plain = arguments(tmp_path / "plain", data_dir, **TASK)
    for earlier, own in ((cut, "second"), (tmp_path / "second", "third")):
        rest = continued_run(monkeypatch, capsys, plain, earlier, tmp_path / own)
        assert values_of(rest, "INIT_END")[0]["continued"]["other_hooks"] is True
    shutil.rmtree(tmp_path / "second")
    with monkeypatch.context() as variables:
        variables.setenv(CHECKPOINT_DIR, str(tmp_path / "second"))
        run_here(capsys, plain)
    rest = continued_run(monkeypatch, capsys, plain, tmp_path / "second", tmp_path / "fourth")
    assert values_of(rest, "INIT_END")[0]["continued"]["other_hooks"] is False


def test_what_earlier_parts_changed_and_ran_is_not_forgotten(
    tmp_path: Path, data_dir: Path, capsys: Any, monkeypatch: Any, cut: Path
) -> None:
    """A checkpoint hands on what all parts changed beyond the rules, and whether their code was another."""
    second = arguments(tmp_path / "plain", data_dir, **TASK, init_evaluation=False)
    third = arguments(tmp_path / "other", data_dir, **TASK)
    environment_file = tmp_path / "other" / ENVIRONMENT_FILE
    rests = []
    for launch, earlier, own in ((second, cut, "second"), (third, tmp_path / "second", "third")):
        rests.append(continued_run(monkeypatch, capsys, launch, earlier, tmp_path / own))
    begun = [values_of(events, "INIT_END")[0]["continued"] for events in rests]
    changed = [values_of(events, "INIT_START")[0]["changed"] for events in rests]
    assert "init_evaluation" in changed[0] and "init_evaluation" not in begun[0]["changed"] + changed[1]
    assert begun[1]["changed"] == sorted({*begun[0]["changed"], *changed[0]})
    assert [part["other_code"] for part in begun] == [False, False]
    environment_file.write_text("export OMP_NUM_THREADS=1\n")
    rest = continued_run(monkeypatch, capsys, third, cut, tmp_path / "fourth")
    assert values_of(rest, "INIT_END")[0]["continued"]["other_code"] is True
    environment_file.unlink()
    rest = continued_run(monkeypatch, capsys, third, tmp_path / "fourth", tmp_path / "fifth")
    assert values_of(rest, "INIT_END")[0]["continued"]["other_code"] is True


def test_data_without_a_manifest_are_told_apart_by_their_files(
    tmp_path: Path, data_dir: Path, capsys: Any, monkeypatch: Any
) -> None:
    """With a manifest that is what has to be the same, and a checkpoint of another is refused."""
    data = shutil.copytree(data_dir, tmp_path / "data")
    (data / MANIFEST_NAME).unlink(missing_ok=True)
    launch = arguments(tmp_path / "plain", data, **TASK)
    with monkeypatch.context() as variables:
        variables.setenv(CHECKPOINT_DIR, str(tmp_path / "first"))
        run_here(capsys, launch)
    others = []
    for own in ("second", "third"):
        rest = continued_run(monkeypatch, capsys, launch, tmp_path / "first", tmp_path / own)
        others.append(values_of(rest, "INIT_END")[0]["continued"]["other_data"])
        (data / "more.txt").write_text("a file more")
    assert others == [False, True]


def test_what_tells_data_apart_that_have_no_manifest(tmp_path: Path) -> None:
    """Links are followed, hidden files are a file system's, and no name or link breaks a training."""
    data, elsewhere = tmp_path / "data", tmp_path / "elsewhere"
    launch = arguments(tmp_path / "plain", data)
    for folder in (elsewhere / "a", elsewhere / "b", data):
        folder.mkdir(parents=True)
        (folder / "rows").write_text(folder.name)

    def digest() -> frozenset[str]:
        return part_of(launch, []).data

    def link_to(target: str, name: str) -> frozenset[str]:
        (data / name).unlink(missing_ok=True)
        (data / name).symlink_to(elsewhere / target)
        return digest()

    (elsewhere / "b" / "rows").write_text("others")
    alone = digest()
    (data / ".nfs0001").touch()
    assert digest() == alone
    assert link_to("a", "train") != link_to("b", "train") != alone
    assert link_to("a/rows", "file") != link_to("b/rows", "file")
    seen = {digest()}
    for odd in (b"caf\xe9", b"a\nb"):
        Path(os.fsdecode(bytes(data) + b"/" + odd)).touch()
        seen.add(digest())
    (data / "loop").symlink_to(data)
    (data / "nowhere").symlink_to("/nothing/there")
    assert len({*seen, digest()}) == 4


def test_code_of_case_and_driver_is_told_apart_and_that_of_an_earlier_version_is_another(
    tmp_path: Path, data_dir: Path, monkeypatch: Any
) -> None:
    launch = arguments(tmp_path / "plain", data_dir)
    own = part_of(launch, ["seed"])
    assert own.after({}).code == {*own.code, ""}
    assert own.after(own.as_state()) == own
    assert own.after({}).data == {*own.data, ""}
    shared = tmp_path / "benchmarks"
    monkeypatch.setattr(parts, "BENCHMARKS", shared)
    own_code = ("bert/task.py", "bert/pytorch/case.py", "driver/loop.py", "common/a.py")
    paths = [*(shared / name for name in own_code), tmp_path / "utils" / "parameters.py"]
    seen = set()
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
        seen |= part_of(replace(launch, case_dir=shared / "bert" / "pytorch"), []).code
    (shared / "glm").mkdir()
    (shared / "glm" / "task.py").write_text("")
    assert part_of(replace(launch, case_dir=shared / "bert" / "pytorch"), []).code < seen
    assert len(seen) == len(paths)


def test_figures_of_a_continued_run_are_of_its_own_part_and_say_so(
    tmp_path: Path, data_dir: Path, capsys: Any, monkeypatch: Any, cut: Path
) -> None:
    rest = continued_run(
        monkeypatch, capsys, arguments(tmp_path / "rest", data_dir, **TASK), cut, tmp_path / "later"
    )
    finished = values_of(rest, "FINISHED")[0]
    continued = finished["continued"]
    assert (continued["step"], continued["samples"]) == (6, 96)
    assert continued["file"] == str(cut / "step00000006.ckpt")
    assert continued["train_time"] > 0
    assert continued == values_of(rest, "INIT_END")[0]["continued"]
    assert (finished["num_trained_samples"], finished["global_steps"]) == (96, 6)
    assert finished["global_batch_size"] == 16
    assert finished["checkpoint_time"] > 0
    parts = finished["eval_time"] + finished["checkpoint_time"] + finished["data_wait_time"]
    assert finished["pure_compute_time"] == pytest.approx(finished["raw_train_time"] - parts)
    assert finished["p_whole"] <= finished["p_train"] <= finished["p_core"]
    assert finished["p_whole"] == pytest.approx(96 / finished["raw_train_time"])
    assert values_of(rest, "EPOCH_BEGIN")[0]["epoch"] == 1
    assert values_of(rest, "STEP_END")[-1]["num_trained_samples"] == 192


def test_time_to_target_has_the_training_before_the_cut_in_it(
    tmp_path: Path, data_dir: Path, capsys: Any, monkeypatch: Any, cut: Path
) -> None:
    launch = arguments(tmp_path / "rest", data_dir, **{**TASK, "target_mlm_accuracy": 0.0})
    finished = values_of(continued_run(monkeypatch, capsys, launch, cut, tmp_path / "later"), "FINISHED")[0]
    assert finished["converged"]
    assert finished["global_steps"] == 2
    own = finished["time_to_target"] - finished["continued"]["train_time"]
    assert 0 < own <= finished["raw_train_time"]


def test_a_damaged_newest_checkpoint_is_passed_over(
    tmp_path: Path, data_dir: Path, capsys: Any, monkeypatch: Any, cut: Path
) -> None:
    unbroken = run_here(capsys, arguments(tmp_path / "whole", data_dir, **{**TASK, "save_steps": None}))
    newest = cut / "step00000006.ckpt"
    newest.write_bytes(newest.read_bytes()[:-100])
    launch = arguments(tmp_path / "rest", data_dir, **TASK)
    rest = continued_run(monkeypatch, capsys, launch, cut, tmp_path / "later")
    assert losses(rest) == after(3, losses(unbroken))
    (reason,) = values_of(rest, "FINISHED")[0]["continued"]["skipped"]
    assert "step00000006.ckpt is cut off or altered" in reason


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 7}, r"seed = 42 \(now 7\)"),
        (
            {"train_batch_size": 4, "gradient_accumulation_steps": 4},
            r"gradient_accumulation_steps = 2 \(now 4\), train",
        ),
        ({"hidden_size": 32}, r"hidden_size = 16 \(now 32\)"),
        ({"max_steps": 20}, r"decay_steps = 12 \(now 20\)"),
        ({"max_steps": 5, "decay_steps": 12}, "is at the cap already"),
    ],
)
def test_a_checkpoint_of_another_task_is_refused(
    tmp_path: Path, data_dir: Path, capsys: Any, monkeypatch: Any, cut: Path, change: Any, message: str
) -> None:
    launch = arguments(tmp_path / "rest", data_dir, **{**TASK, **change})
    with pytest.raises(FlagPerfError, match=message):
        continued_run(monkeypatch, capsys, launch, cut, tmp_path / "later")


def test_another_world_size_or_data_set_is_refused(
    tmp_path: Path, data_dir: Path, capsys: Any, monkeypatch: Any, warm_python: str, cut: Path
) -> None:
    launch = arguments(tmp_path / "two", data_dir, **{**TASK, "train_batch_size": 4})
    code, _ = launch_ranks(
        tmp_path / "logs", launch, 2, warm_python, **{CONTINUE_FROM: str(cut), CHECKPOINT_DIR: str(cut)}
    )
    assert code != 0
    # whichever rank says so first, the other is ended with it
    assert "world_size = 1 (now 2)" in "".join(
        log.read_text() for log in (tmp_path / "logs").glob("rank*.out.log")
    )
    other = write_data(tmp_path / "other")
    (other / "manifest.json").write_text("{}")
    with pytest.raises(FlagPerfError, match="data = None"):
        continued_run(
            monkeypatch, capsys, arguments(tmp_path / "rest", other, **TASK), cut, tmp_path / "later"
        )


def test_a_checkpoint_that_cannot_be_written_does_not_end_training(
    tmp_path: Path, data_dir: Path, capsys: Any, monkeypatch: Any
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(CHECKPOINT_DIR, str(tmp_path / "file" / "checkpoints"))
    run(arguments(tmp_path, data_dir, **TASK), time.monotonic())
    output = capsys.readouterr().out
    (finished,) = [
        e.value for line in output.splitlines() if (e := parse_line(line)) and e.name == "FINISHED"
    ]
    assert (finished["global_steps"], finished["failed_checkpoints"]) == (12, 3)  # after 3, 6 and 9
    assert output.count("training goes on without it") == 3


def test_a_state_that_no_checkpoint_can_hold_ends_training_at_the_first_save(
    tmp_path: Path, data_dir: Path, monkeypatch: Any
) -> None:
    monkeypatch.setenv(CHECKPOINT_DIR, str(tmp_path / "checkpoints"))
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    (hooks / "odd.py").write_text(ODD_OPTIMIZER)
    with pytest.raises(FlagPerfError, match=r"what a checkpoint cannot hold: builtins\.object"):
        run(arguments(tmp_path, data_dir, hooks, **TASK), time.monotonic())
    assert list((tmp_path / "checkpoints").iterdir()) == []


def test_nothing_to_go_on_from_is_told(tmp_path: Path, data_dir: Path, capsys: Any, monkeypatch: Any) -> None:
    (tmp_path / "empty").mkdir()
    launch = arguments(tmp_path / "rest", data_dir, **TASK)
    with pytest.raises(FlagPerfError, match="there is no whole checkpoint: the folder has none"):
        continued_run(monkeypatch, capsys, launch, tmp_path / "empty", tmp_path / "later")
    with pytest.raises(FlagPerfError, match="FLAGPERF_CHECKPOINT_DIR is not set"):
        run_here(capsys, launch)


def test_where_that_is_allowed_a_run_without_a_checkpoint_begins_anew(
    tmp_path: Path, data_dir: Path, capsys: Any, monkeypatch: Any, cut: Path
) -> None:
    monkeypatch.setenv(MAY_BEGIN_ANEW, "1")
    launch = arguments(tmp_path / "rest", data_dir, **TASK)
    absent = tmp_path / "absent"
    events = continued_run(monkeypatch, capsys, launch, absent, tmp_path / "later")
    assert min(losses(events)) == 1
    for name in ("INIT_END", "FINISHED"):
        assert values_of(events, name)[0]["begun_anew"] == f"{absent} has no checkpoint"
    for path in cut.iterdir():
        path.write_bytes(b"")
    with pytest.raises(
        FlagPerfError, match="there is no whole checkpoint"
    ):  # damaged ones are not overlooked
        continued_run(monkeypatch, capsys, launch, cut, tmp_path / "later")


def test_two_ranks_go_on_as_if_never_cut_off(tmp_path: Path, data_dir: Path, warm_python: str) -> None:
    """Each rank has dropout masks of its own: every rank's random generators must come back."""
    task = {**TASK, "train_batch_size": 4, "learning_rate": 0.01}
    folders = {CHECKPOINT_DIR: str(tmp_path / "earlier")}
    code, (unbroken, _) = launch_ranks(
        tmp_path / "whole_logs", arguments(tmp_path / "whole", data_dir, **task), 2, warm_python, **folders
    )
    assert code == 0
    killing = killing_hook(tmp_path / "killing", 8)
    cut = arguments(tmp_path / "cut", data_dir, killing, **task)
    code, (killed, _) = launch_ranks(
        tmp_path / "cut_logs", cut, 2, warm_python, **{CHECKPOINT_DIR: str(tmp_path / "cut_off")}
    )
    assert code != 0
    assert max(losses(killed)) == 7

    folders = {CONTINUE_FROM: str(tmp_path / "cut_off"), CHECKPOINT_DIR: str(tmp_path / "later")}
    launch = replace(cut, extern_module_dir=tmp_path / "absent")
    code, (rest, other) = launch_ranks(tmp_path / "rest_logs", launch, 2, warm_python, **folders)
    assert code == 0
    assert losses(rest) == pytest.approx(after(6, losses(unbroken)), rel=1e-5)
    assert losses(other) == losses(rest)
    first, second = values_of(unbroken, "FINISHED")[0], values_of(rest, "FINISHED")[0]
    assert second["num_trained_samples"] == 96
    assert second["final_mlm_accuracy"] == pytest.approx(first["final_mlm_accuracy"], abs=0.02)


def test_all_ranks_begin_anew_together(tmp_path: Path, data_dir: Path, warm_python: str) -> None:
    launch = arguments(tmp_path / "anew", data_dir, **{**TASK, "train_batch_size": 4, "max_steps": 2})
    folders = {CONTINUE_FROM: str(tmp_path / "absent"), CHECKPOINT_DIR: str(tmp_path / "later")}
    code, ranks = launch_ranks(tmp_path / "logs", launch, 2, warm_python, **folders, **{MAY_BEGIN_ANEW: "1"})
    assert code == 0
    for events in ranks:
        assert sorted(losses(events)) == [1, 2]
        assert "absent has no checkpoint" in values_of(events, "INIT_END")[0]["begun_anew"]
