"""What a case's class gave, and how to say that it is not what `driver/case.py` asks for."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from numbers import Real
from typing import Any

from utils.errors import FlagPerfError


def case_error(case: object, message: str, remedy: str) -> FlagPerfError:
    """What is wrong with what a case's class gave, with the file that it stands in."""
    module = sys.modules.get(type(case).__module__)
    return FlagPerfError(message, where=str(getattr(module, "__file__", type(case).__name__)), remedy=remedy)


def check_metrics(case: Any, metrics: object) -> dict[str, float]:
    """What `metrics` gave, if the case's metric is among it.

    Raises:
        FlagPerfError: it is not, or something in it is no number.
    """
    remedy = f'return {{"{case.metric}": ...}}, with a number for each name'
    if not isinstance(metrics, Mapping):
        raise case_error(case, f"metrics gave {kind_of(metrics)}, not names with numbers", remedy)
    if case.metric not in metrics:
        names = ", ".join(map(str, metrics)) or "nothing"
        raise case_error(case, f"metrics gave {names}, and not the case's metric, {case.metric}", remedy)
    wrong = [f"{name} = {kind_of(value)}" for name, value in metrics.items() if not is_number(value)]
    if wrong:
        raise case_error(case, f"metrics gave what is no number: {', '.join(wrong)}", remedy)
    return {str(name): float(value) for name, value in metrics.items()}


def shape_of(value: object) -> tuple[int, ...] | None:
    """Of a tensor of any framework; None for anything else."""
    shape = getattr(value, "shape", None)
    return None if shape is None else tuple(shape)


def is_number(value: object) -> bool:
    """Whether it is one, NumPy's included; a tensor is none."""
    return isinstance(value, Real) and not isinstance(value, bool)


def kind_of(value: object) -> str:
    """A value in a message."""
    shape = shape_of(value)
    return f"{value!r} ({type(value).__name__})" if shape is None else f"a tensor of shape {shape}"
