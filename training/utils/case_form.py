"""The form of a case's folder: the controller holds to it before anything is launched, every rank when it starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from utils.errors import Problem
from utils.parameters import MeasurementSettings, TrainingSettings

CASE_FILE = "case.py"
CASE_CLASS = "Case"
MUTABLE_FILE = "mutable_params.py"
MUTABLE_NAME = "mutable_params"
DOCS = "docs/adding-a-case.md"
# What a script of a case's own says in its configuration of a metric that is met from above: "lower".
BETTER = "metric_better"
# What the class of a case of each kind has; `benchmarks/driver/case.py` and `operations.py` say what each is.
PARTS: Mapping[str, Sequence[str]] = {
    TrainingSettings.kind: (
        "metric", "flops_formula", "build_model", "training_data", "evaluation_data", "baseline", "loss", "evaluate",
        "metrics",
    ),
    MeasurementSettings.kind: ("operations",),
}  # fmt: skip
# A case that measures may have this in place of its parts: it does all its work by itself.
WORK = "work"
# What the class of such a case may have besides, a literal: what its processes are. A controller runs beside the first
# node's ranks, and decides when the round ends; the ranks are workers, and without one the round goes on.
ROLES, SEARCH_ROLES = "roles", ("controller", "worker")
# The variable with the run's token, by which these processes know each other.
ROLES_TOKEN = "FLAGPERF_SEARCH_TOKEN"  # noqa: S105 - a name


def missing_parts(kind: str, has: Callable[[str], object]) -> list[str]:
    """What a class lacks of the parts of a case of this kind; `has` says of a name whether the class has it."""
    if kind == MeasurementSettings.kind and has(WORK):
        return []
    return [part for part in PARTS[kind] if not has(part)]


def lacking(parts: Sequence[str], kind: str) -> str:
    """The message for a class without some of its parts."""
    return f"the class {CASE_CLASS} lacks {', '.join(parts)}, which a case of the kind {kind} has"


def mutable_problem(path: Path, values: Mapping[str, Any] | None) -> Problem | None:
    """What is wrong with the list of what a vendor may change; None where it is right.

    Args:
        values: what the file sets; None where there is none.
    """
    remedy = f"write {MUTABLE_NAME} = [...], the parameters that a vendor may set otherwise and stay closed; "
    remedy += "[] for none"
    if values is None:
        message = "there is no such file: every result of the case would be open"
        return Problem(str(path), path.name, "", message, remedy)
    names = values.get(MUTABLE_NAME)
    if isinstance(names, (list, tuple)) and all(isinstance(name, str) for name in names):
        return None
    shown = repr(names) if MUTABLE_NAME in values else ""
    return Problem(str(path), MUTABLE_NAME, shown, "is no list of names", remedy)
