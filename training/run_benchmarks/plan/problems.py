"""What is wrong with a user's configuration: gathered while it is read, reported all at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from run_benchmarks.plan.redact import HIDDEN, redact_text
from run_benchmarks.plan.secrets import SHORTEST, Secrets
from utils.errors import Problem, ProblemsError, nearest

MOST_PROBLEMS = 1000  # that anybody reads; what has more is no configuration


class ConfigError(ProblemsError):
    """The configuration is wrong; nothing was launched. `exit_code` is what `run.py` ends with."""

    exit_code = 2


class NoValidCaseError(ProblemsError):
    """Both config files are right, but there is no case that can be run."""

    exit_code = 4


class UnfitError(ValueError):
    """A value that a setting cannot have: why, and what would be right."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


class Problems:
    """A list that parts of the planner add to. Values are shortened and freed of credentials.

    secrets: of the files that were read so far. With too many of them the reading ends: ConfigError.
    """

    def __init__(self) -> None:
        self.all: list[Problem] = []
        self._seen: set[Problem] = set()
        self.secrets = Secrets()

    def add(self, where: Path | str, name: str, value: Any, message: str, remedy: str) -> None:
        """Note one problem. `value` is what stands there; None where nothing does."""
        shown = "" if value is None else repr(value)
        self._note(Problem(str(where), name, shown, message, remedy))

    def extend(self, problems: Iterable[Problem]) -> None:
        """Note problems that another part found."""
        for problem in problems:
            self._note(problem)

    def _note(self, problem: Problem) -> None:
        is_secret = len(problem.value) >= SHORTEST and self.secrets.are_named(problem.name)
        value = HIDDEN if is_secret else redact_text(problem.value)
        message = redact_text(problem.message)
        problem = self.secrets.hide_in(replace(problem, value=value, message=message))
        problem = replace(problem, value=shorten(problem.value))
        if problem not in self._seen:  # one vendor file may serve several cases
            self._check_room(problem.where)
            self._seen.add(problem)
            self.all.append(problem)

    def _check_room(self, where: str) -> None:
        if len(self.all) >= MOST_PROBLEMS:
            message = f"there are more than {MOST_PROBLEMS} problems: what follows is not looked at"
            raise ConfigError([*self.all, Problem(where, "and more", "", message, "mend these first")])

    def __bool__(self) -> bool:
        return bool(self.all)


def shorten(text: str, width: int = 100) -> str:
    """`text`, or its beginning where it is longer than `width` characters."""
    return text if len(text) <= width else text[: width - 3] + "..."


def listing(names: Sequence[str]) -> str:
    """`a, b and c`, for a sentence that says what there is; `none` where there is nothing."""
    *others, last = names or ["none"]
    return f"{', '.join(others)} and {last}" if others else last


def choices(value: str, names: Sequence[str]) -> str:
    """`a, b and c; did you mean b?`, for a `value` that is none of `names`."""
    hint = nearest(value, names)
    return listing(names) + (f"; {hint}" if hint else "")
