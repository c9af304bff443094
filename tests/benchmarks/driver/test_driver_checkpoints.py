"""Checkpoint files: whole or not there, the last two kept, and nothing damaged is taken for whole."""

from __future__ import annotations

import importlib
import math
import os
import pickle
import random
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import paddle
import pytest
import torch

from benchmarks.driver.checkpoint_files import NotWrittenError, read_newest, write_checkpoint
from benchmarks.driver.random_states import host_random_state, set_host_random_state
from benchmarks.driver.run_state import refuse_other_task
from benchmarks.driver.sampling import ShuffledStream, rank_steps
from tests.benchmarks.driver.ranks import environment
from utils.errors import FlagPerfError

FRAMEWORKS = ["pytorch", "paddle"]
NAMES = ["step00000001.ckpt", "step00000002.ckpt"]
# A writer that is killed when half of its checkpoint is written.
KILLED_WRITER = """
import os, signal, sys
from pathlib import Path
from benchmarks.driver.checkpoint_files import write_checkpoint
def half(partial):
    partial.write_bytes(bytes(1 << 22))
    os.kill(os.getpid(), signal.SIGKILL)
write_checkpoint(Path(sys.argv[1]), 1, lambda partial: partial.write_bytes(b"whole"))
write_checkpoint(Path(sys.argv[1]), 2, half)
"""

READER = """
import sys
from pathlib import Path
from benchmarks.driver.checkpoint_files import read_newest
path, _, skipped = read_newest(Path(sys.argv[1]))
print(path.name, *skipped, sep="\\n")
"""


def writing(content: bytes) -> Callable[[Path], None]:
    return lambda path: [path.write_bytes(content), None][1]


def names_in(folder: Path) -> list[str]:
    """Of the checkpoints, each of which has its checksum beside it."""
    names = sorted(path.name for path in folder.iterdir())
    checkpoints = [name for name in names if not name.endswith(".sha256")]
    assert names == sorted([*checkpoints, *(f"{name}.sha256" for name in checkpoints)])
    return checkpoints


def test_the_last_two_are_kept(tmp_path: Path) -> None:
    folder = tmp_path / "run" / "case" / "round1"
    for step in (5, 10, 100):
        write_checkpoint(folder, step, writing(b"%d" % step))
    assert names_in(folder) == ["step00000010.ckpt", "step00000100.ckpt"]
    path, data, skipped = read_newest(folder)
    assert (path.name, data, skipped) == ("step00000100.ckpt", b"100", ())


def test_sha256sum_can_check_them(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, 1, writing(b"content"))
    command = ["sha256sum", "--check", f"{NAMES[0]}.sha256"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode == 0


def test_what_another_run_left_is_not_touched_nor_what_was_just_written(tmp_path: Path) -> None:
    for step in (100, 200):
        write_checkpoint(tmp_path, step, writing(b""))
    for step in (1, 2, 3):
        assert write_checkpoint(tmp_path, step, writing(b"x")).is_file()
    assert [int(name[4:12]) for name in names_in(tmp_path)] == [2, 3, 100, 200]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), ValueError(), KeyboardInterrupt()])
def test_half_a_checkpoint_never_stays(tmp_path: Path, error: BaseException) -> None:
    def breaking(path: Path) -> None:
        path.write_bytes(b"half")
        assert list(tmp_path.glob(".*.partial")) == [path]
        raise error

    with pytest.raises(NotWrittenError if isinstance(error, OSError) else type(error)):
        write_checkpoint(tmp_path, 1, breaking)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda data: data[:-1], "cut off or altered"),
        (lambda data: bytes([data[0] ^ 1]) + data[1:], "cut off or altered"),
        (lambda data: data + b"more", "cut off or altered"),
        (lambda data: b"", "cut off or altered"),
    ],
)
def test_a_damaged_file_is_passed_over_for_the_one_before(tmp_path: Path, damage: Any, why: str) -> None:
    for step in (1, 2):
        write_checkpoint(tmp_path, step, writing(bytes(100)))
    newest = tmp_path / NAMES[1]
    newest.write_bytes(damage(newest.read_bytes()))
    path, _, (reason,) = read_newest(tmp_path)
    assert path.name == NAMES[0]
    assert reason.startswith(NAMES[1]) and why in reason
    (tmp_path / NAMES[0]).write_bytes(b"")
    with pytest.raises(FlagPerfError, match=f"there is no whole checkpoint: {NAMES[1]} .*; {NAMES[0]} "):
        read_newest(tmp_path)


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (Path.unlink, f"has no {NAMES[1]}.sha256 beside it"),
        (lambda path: path.write_bytes(b"\xff"), "cut off or altered"),
        (lambda path: path.write_bytes(b""), "cut off or altered"),
        (lambda path: path.write_text(path.read_text().split()[0]), "the checksum of no file"),
    ],
)
def test_a_checkpoint_without_its_checksum_is_not_trusted(tmp_path: Path, damage: Any, why: str) -> None:
    for step in (1, 2):
        write_checkpoint(tmp_path, step, writing(bytes(100)))
    damage(tmp_path / f"{NAMES[1]}.sha256")
    path, _, (reason,) = read_newest(tmp_path)
    assert (path.name, why in reason) == (NAMES[0], True)


def test_a_checkpoint_under_the_name_of_another_step_is_passed_over(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, 1, writing(b"1"))
    for ending in ("", ".sha256"):
        shutil.copy(tmp_path / f"{NAMES[0]}{ending}", tmp_path / f"{NAMES[1]}{ending}")
    path, _, (reason,) = read_newest(tmp_path)
    assert path.name == NAMES[0]
    assert reason == f"{NAMES[1]} may be of another step: {NAMES[1]}.sha256 is the checksum of {NAMES[0]}"


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to(NAMES[0])])
def test_what_is_no_regular_file_is_passed_over(tmp_path: Path, make: Callable[[Path], None]) -> None:
    for step in (1, 2):
        write_checkpoint(tmp_path, step, writing(b"1"))
    (tmp_path / NAMES[1]).unlink()
    make(tmp_path / NAMES[1])
    command = [sys.executable, "-c", READER, str(tmp_path)]  # one that would hang is ended by the time limit
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout.split("\n")[:2] == [NAMES[0], f"{NAMES[1]} is not a regular file"]


def test_a_writer_that_is_killed_leaves_the_one_before(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", KILLED_WRITER, str(tmp_path)]
    done = subprocess.run(argv, env=environment(), capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {NAMES[0], f"{NAMES[0]}.sha256", f".{NAMES[1]}.partial"}
    path, data, skipped = read_newest(tmp_path)
    assert (path.name, data, skipped) == (NAMES[0], b"whole", ())
    write_checkpoint(tmp_path, 2, writing(b"2"))  # the next writer is not held up by what was left
    assert names_in(tmp_path) == NAMES


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FlagPerfError, match="the checkpoint of step 7 cannot be written: Not a directory"):
        write_checkpoint(tmp_path / "file" / "round1", 7, writing(b""))


# ---- what the frameworks write


def state_of(framework: str) -> Any:
    return importlib.import_module(f"benchmarks.driver.{framework}.state")


def through_a_file(framework: str, state: Any, file: Path) -> Any:
    state_of(framework).save(state, file)
    return state_of(framework).load(BytesIO(file.read_bytes()))


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_what_is_written_is_read_with_its_types(tmp_path: Path, framework: str) -> None:
    plain = {
        "a": [1, 2.5, "x", None, True],
        3: (1, (2,), []),
        "odd": {"inf": math.inf, "third": 1 / 3, "large": 2**70, "text": "\u00e9\n"},
    }
    assert through_a_file(framework, dict(plain), tmp_path / "state") == plain


def test_tensors_are_read_with_their_types(tmp_path: Path) -> None:
    theirs = {"b": torch.arange(3.0).bfloat16(), "u": [torch.tensor([1, 255], dtype=torch.uint8)]}
    read = through_a_file("pytorch", theirs, tmp_path / "state")
    assert torch.equal(read["b"], theirs["b"]) and read["b"].dtype == torch.bfloat16
    assert torch.equal(read["u"][0], theirs["u"][0])
    tensors = {"b": paddle.arange(3.0).astype("bfloat16"), "u": [paddle.to_tensor([1, 255], dtype="uint8")]}
    here = through_a_file("paddle", {"model": tensors}, tmp_path / "state")["model"]
    assert (here["b"].dtype, here["b"].astype("float32").tolist()) == (paddle.bfloat16, [0.0, 1.0, 2.0])
    assert here["u"][0].tolist() == [1, 255]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_what_cannot_be_written_is_refused(tmp_path: Path, framework: str) -> None:
    with pytest.raises(FlagPerfError, match="what a checkpoint cannot hold"):
        state_of(framework).save({"hook": lambda: 0}, tmp_path / "state")


@pytest.fixture
def files_of_1_mib() -> Iterator[None]:
    """No file of this process may be larger: a disk that is full in the midst of one."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_full_disk_is_the_disks_fault_and_not_the_states(
    tmp_path: Path, framework: str, files_of_1_mib: None
) -> None:
    tensors: Any = {"pytorch": torch, "paddle": paddle}[framework]
    state = {"model": {"x": tensors.zeros([1 << 19]), "y": tensors.zeros([1 << 19])}}
    with pytest.raises(NotWrittenError, match="the checkpoint of step 1 cannot be written: File too large"):
        write_checkpoint(tmp_path, 1, lambda partial: state_of(framework).save(state, partial))
    assert list(tmp_path.iterdir()) == []


class Evil:
    """Runs a command where it is unpickled."""

    def __reduce__(self) -> Any:
        return (os.system, ("touch /tmp/flagperf_ran",))


def test_a_checkpoint_of_pytorch_never_runs_code() -> None:
    stream = BytesIO()
    torch.save({"x": Evil()}, stream)
    with pytest.raises(pickle.UnpicklingError):
        state_of("pytorch").load(BytesIO(stream.getvalue()))


def test_a_checkpoint_of_paddle_never_runs_code() -> None:
    whole, inside = BytesIO(pickle.dumps(Evil())), BytesIO()
    np.savez(inside, tree=np.array([Evil()], dtype=object))
    for planted in (whole, BytesIO(inside.getvalue())):
        with pytest.raises(ValueError, match="allow_pickle"):
            state_of("paddle").load(planted)


def test_every_difference_of_the_task_is_reported(tmp_path: Path) -> None:
    then, now = {"seed": 1, "world_size": 2, "same": 0}, {"seed": 1, "world_size": 4, "same": 0, "new": "x"}
    refuse_other_task(then, dict(then), tmp_path)
    with pytest.raises(FlagPerfError, match=r"new = None \(now 'x'\), world_size = 2 \(now 4\)"):
        refuse_other_task(then, now, tmp_path)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_random_generators_go_on_where_they_were(framework: str) -> None:
    module = importlib.import_module(f"benchmarks.driver.{framework}.state")
    stream = BytesIO()
    module.save(host_random_state(), stream)
    state = module.load(BytesIO(stream.getvalue()))
    drawn = [random.random(), random.gauss(0, 1), *np.random.standard_normal(3)]
    set_host_random_state(state)
    assert [random.random(), random.gauss(0, 1), *np.random.standard_normal(3)] == drawn


@pytest.mark.parametrize("first_step", [1, 7, 8, 100])
def test_the_stream_goes_on_at_any_step(first_step: int) -> None:
    """Also across the end of an epoch: 30 samples, 4 a step."""

    def steps(first_step: int = 0) -> Any:
        stream = ShuffledStream(3, lambda shard: 10, seed=1, window=2).global_batches(4)
        return rank_steps(stream, rank=1, world_size=2, accumulation=1, first_step=first_step)

    whole, rest = steps(), steps(first_step)
    for _ in range(first_step):
        next(whole)
    for _ in range(20):
        (one,), (other,) = next(whole), next(rest)
        assert (one.epoch, one.shards.tolist(), one.rows.tolist()) == (
            other.epoch,
            other.shards.tolist(),
            other.rows.tolist(),
        )
