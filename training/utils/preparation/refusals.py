"""What a preparation does not touch: data prepared otherwise, and files that it did not make."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from utils.errors import FlagPerfError, Problem, ProblemsError


def refuse_other_recipe(
    there: Mapping[str, Any], wanted: Mapping[str, Any], *, where: str, remedy: str
) -> None:
    """FlagPerfError naming each parameter in which what is `there` differs from what is `wanted`."""
    differences = [
        f"{key} is {_shown(there.get(key))} there, {_shown(wanted.get(key))} asked"
        for key in sorted({*there, *wanted})
        if there.get(key) != wanted.get(key)
    ]
    if differences:
        message = "this directory holds data prepared otherwise: " + "; ".join(differences)
        raise FlagPerfError(message, where=where, remedy=remedy)


def refuse_files_of_others(
    out: Path, outputs: Sequence[Path], inputs: Iterable[Path], own: Collection[str]
) -> None:
    """ProblemsError with every output below `out` that is an input, or is there and not among `own` (paths)."""
    read = {path.resolve() for path in inputs}
    problems = []
    for path in outputs:
        name = path.relative_to(out).as_posix()
        if path.resolve() in read:
            message, remedy = (
                "is an input, and would be overwritten",
                "give another --out, or a copy elsewhere",
            )
            problems.append(Problem(str(out), name, "", message, remedy))
        elif os.path.lexists(path) and name not in own:
            message = "is there, was not made by this preparation, and would be overwritten"
            problems.append(Problem(str(out), name, "", message, "give another --out, or move it away"))
    if problems:
        raise ProblemsError(problems)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}..."
