"""Errors that say what happened, where, and what to do next."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher, get_close_matches
from typing import ClassVar

from utils.records import FailureClass

_OF_THE_USER = "give a path that this user may use, or mend this one: ls -ld shows its owner and mode"
_NO_ROOM = "make room there, or give a path elsewhere: df -h and df -i show what is full, quota what is yours"
# What to do about a file, by why the system refuses it.
_REMEDIES = {
    errno.EACCES: _OF_THE_USER,
    errno.EPERM: _OF_THE_USER,
    errno.EROFS: "give a path that can be written to: this one is on a file system that is mounted read-only",
    errno.ENOSPC: _NO_ROOM,
    errno.EDQUOT: _NO_ROOM,
    errno.ENOENT: "correct the path, or make what it names",
    errno.ENOTDIR: "correct the path: what it takes for a folder is none",
    errno.EISDIR: "give the path of a file: this is a folder",
    errno.EEXIST: "give another path, or move away what is there",
    errno.ENAMETOOLONG: "give a shorter path",
    errno.ELOOP: "mend its links, which lead in a circle, or give a path without them",
    errno.EMFILE: "let this user open more files: ulimit -n",
}


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with what the user gave: shown as a line of a list, never alone.

    `where` names a file, `name` a key, a case or a host in it, `value` what stands there.
    """

    where: str
    name: str
    value: str
    message: str
    remedy: str

    def __str__(self) -> str:
        file = self.where.rpartition("/")[2].partition(":")[0]
        subject = f"{self.name} = {self.value}" if self.value else self.name
        is_said = subject == file  # it is the file itself that is wrong, and no part of it
        head = self.where if is_said else f"{self.where}: {subject}"
        return f"{head}: {_quoted(self.message)}\n    -> {self.remedy}"


class FlagPerfError(Exception):
    """An error for the user: `message` says what, `where` the host or file, `remedy` what to do next.

    failure_class: what it means for a round that ends by it; None where that depends on the stage.
    """

    failure_class: ClassVar[FailureClass | None] = None

    def __init__(self, message: str, *, where: str = "", remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.remedy = remedy

    def __str__(self) -> str:
        message = _quoted(self.message)
        head = f"{self.where}: {message}" if self.where else message
        return f"{head}\n    -> {self.remedy}" if self.remedy else head


class ProblemsError(FlagPerfError):
    """Several problems, reported together, so that the user mends them in one go."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = tuple(problems)

    def __str__(self) -> str:
        return self.message


def file_error(error: OSError) -> FlagPerfError:
    """What the system says of a file that the user gave, or that lies in a folder that he gave."""
    remedy = _REMEDIES.get(error.errno or 0, "mend what the system says, or give another path")
    return FlagPerfError(
        f"cannot be used: {error.strerror}", where=os.fsdecode(error.filename), remedy=remedy
    )


def _quoted(message: str) -> str:
    """A message whose further lines are marked: what a host or a stranger's code said is no remedy of ours."""
    return message.replace("\n", "\n    | ")


def told_of(host: str, error: FlagPerfError) -> str:
    """An error on a host, which is named once: many name it themselves."""
    return str(error) if error.where == host else f"{host}: {error}"


def raised(error: BaseException) -> str:
    """`KeyError: 'x'`, as a traceback ends; of an error without a text its kind alone."""
    kind, text = type(error).__name__, str(error)
    return f"{kind}: {text}" if text else kind


def closest(name: str, names: Iterable[str], cutoff: float = 0.6) -> str:
    """The one of `names` that a misspelt `name` is nearest to; empty where none is as near as `cutoff` (1: equal)."""
    return next(iter(get_close_matches(name, list(names), n=1, cutoff=cutoff)), "")


def nearest(name: str, names: Iterable[str], cutoff: float = 0.6) -> str:
    """`did you mean X?` for a misspelt `name`; empty where there is no such X."""
    match = closest(name, names, cutoff)
    return f"did you mean {match}?" if match else ""


def nearest_first(name: str, names: Iterable[str]) -> list[str]:
    """All `names`, that to which `name` is nearest at the beginning."""
    return sorted(names, key=lambda each: -SequenceMatcher(None, each, name).ratio())
