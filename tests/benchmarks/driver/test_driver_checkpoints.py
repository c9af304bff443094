"""Checkpoint files: whole or not there, the last two kept, and nothing damaged is taken for whole."""

from __future__ import annotations

import io
import math
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.driver.checkpoints import NotWrittenError, read_newest, refuse_other_task, write_checkpoint
from benchmarks.driver.random_states import host_random_state, set_host_random_state
from benchmarks.driver.sampling import ShuffledStream, rank_steps
from benchmarks.driver.state_file import Raw, mapped, parse_state, write_state
from tests.benchmarks.driver.ranks import environment
from utils.errors import FlagPerfError

NAMES = ["step00000001.ckpt", "step00000002.ckpt"]
# A writer that is killed when half of its checkpoint is written.
KILLED_WRITER = """
import os, signal, sys
from pathlib import Path
from benchmarks.driver.checkpoints import write_checkpoint
from benchmarks.driver.state_file import Raw
def killed():
    assert list(Path(sys.argv[1]).glob(".*.partial"))
    os.kill(os.getpid(), signal.SIGKILL)
write_checkpoint(Path(sys.argv[1]), 1, {"step": 1})
write_checkpoint(Path(sys.argv[1]), 2, {"big": Raw("uint8", (1 << 22,), 1 << 22, lambda: bytes(1 << 22)),
                                        "rest": Raw("uint8", (4,), 4, killed)})
"""


def raw(content: bytes) -> Raw:
    return Raw("uint8", (len(content),), len(content), lambda: content)


def through_a_file(state: Any) -> Any:
    stream = io.BytesIO()
    write_state(stream, state)
    return parse_state(bytearray(stream.getvalue()))


def test_what_is_written_is_read_with_its_types() -> None:
    plain = {
        "a": [1, 2.5, "x", None, True],
        3: (1, (2,), []),
        None: {"b": b"\x00\xff", "empty": b""},
        "odd": {"inf": math.inf, "third": 1 / 3, "large": 2**70, "text": "\u00e9\n"},
    }
    assert through_a_file(plain) == plain
    state = through_a_file({"x": [raw(b"abc"), {"y": raw(b"")}], "z": raw(b"defg")})
    found = mapped(state, Raw, lambda leaf: (leaf.dtype, leaf.shape, bytes(leaf.read())))
    assert found == {
        "x": [("uint8", (3,), b"abc"), {"y": ("uint8", (0,), b"")}],
        "z": ("uint8", (4,), b"defg"),
    }


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"optimizer": {"hook": print}}, r"state\['optimizer'\]\['hook'\] is a builtin_function"),
        ({"groups": [{1j}]}, r"state\['groups'\]\[0\] is a set"),
        ({(1, 2): 0}, "has a tuple as a key"),
    ],
)
def test_what_cannot_be_written_is_named(state: Any, message: str) -> None:
    with pytest.raises(FlagPerfError, match=message):
        write_state(io.BytesIO(), state)


def test_the_last_two_are_kept(tmp_path: Path) -> None:
    folder = tmp_path / "run" / "case" / "round1"
    for step in (5, 10, 100):
        write_checkpoint(folder, step, {"step": step})
    assert [path.name for path in sorted(folder.iterdir())] == ["step00000010.ckpt", "step00000100.ckpt"]
    path, data, skipped = read_newest(folder)
    assert (path.name, parse_state(data), skipped) == ("step00000100.ckpt", {"step": 100}, ())


def test_what_another_run_left_is_not_touched_nor_what_was_just_written(tmp_path: Path) -> None:
    for step in (100, 200):
        write_checkpoint(tmp_path, step, {"step": step})
    for step in (1, 2, 3):
        assert write_checkpoint(tmp_path, step, {"step": step}).is_file()
    assert [int(path.stem[4:]) for path in sorted(tmp_path.iterdir())] == [2, 3, 100, 200]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), ValueError(), KeyboardInterrupt()])
def test_half_a_checkpoint_never_stays(tmp_path: Path, error: BaseException) -> None:
    def breaking() -> bytes:
        assert list(tmp_path.glob(".*.partial"))
        raise error

    expected = NotWrittenError if isinstance(error, OSError) else type(error)
    with pytest.raises(expected):
        write_checkpoint(tmp_path, 1, {"weights": Raw("uint8", (4,), 4, breaking)})
    with pytest.raises(FlagPerfError, match="cannot hold") as found:
        write_checkpoint(tmp_path, 1, {"optimizer": print})
    assert not isinstance(found.value, NotWrittenError)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda data: data[:-1], "cut off or altered"),
        (lambda data: data[:30], "cut off or altered"),
        (lambda data: data[:-40] + bytes([data[-40] ^ 1]) + data[-39:], "cut off or altered"),
        (lambda data: data + b"more", "cut off or altered"),
        (lambda data: b"", "is no checkpoint"),
        (lambda data: b"PK\x03\x04" + data, "is no checkpoint"),
    ],
)
def test_a_damaged_file_is_passed_over_for_the_one_before(tmp_path: Path, damage: Any, why: str) -> None:
    for step in (1, 2):
        write_checkpoint(tmp_path, step, {"weights": raw(bytes(100))})
    newest = tmp_path / NAMES[1]
    newest.write_bytes(damage(newest.read_bytes()))
    path, _, (reason,) = read_newest(tmp_path)
    assert path.name == NAMES[0]
    assert reason.startswith(NAMES[1]) and why in reason
    (tmp_path / NAMES[0]).write_bytes(b"")
    with pytest.raises(FlagPerfError, match=f"there is no whole checkpoint: {NAMES[1]} .*; {NAMES[0]} "):
        read_newest(tmp_path)


def test_a_writer_that_is_killed_leaves_the_one_before(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", KILLED_WRITER, str(tmp_path)]
    done = subprocess.run(argv, env=environment(), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {NAMES[0], f".{NAMES[1]}.partial"}
    path, data, skipped = read_newest(tmp_path)
    assert (path.name, parse_state(data), skipped) == (NAMES[0], {"step": 1}, ())
    write_checkpoint(tmp_path, 2, {"step": 2})  # the next writer is not held up by what was left
    assert sorted(path.name for path in tmp_path.iterdir()) == NAMES


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FlagPerfError, match="the checkpoint of step 7 cannot be written: Not a directory"):
        write_checkpoint(tmp_path / "file" / "round1", 7, {})


def test_every_difference_of_the_task_is_told(tmp_path: Path) -> None:
    then, now = {"seed": 1, "world_size": 2, "same": 0}, {"seed": 1, "world_size": 4, "same": 0, "new": "x"}
    refuse_other_task(then, dict(then), tmp_path)
    with pytest.raises(FlagPerfError, match=r"new = None \(now 'x'\), world_size = 2 \(now 4\)"):
        refuse_other_task(then, now, tmp_path)


def test_random_generators_go_on_where_they_were() -> None:
    import random

    import numpy as np

    state = through_a_file(host_random_state())
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
