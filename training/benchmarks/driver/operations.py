"""What a case of the kind *measure* brings: operations. The measurement loop is the driver's."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from benchmarks.driver.case import Context
from benchmarks.driver.case_answers import case_error, is_number, kind_of
from benchmarks.driver.engine import Engine
from benchmarks.driver.perf_log import PerfLog
from utils.errors import FlagPerfError
from utils.figure_names import name_problem
from utils.parameters import MeasurementSettings

# What the controller takes of a figure; the unit stands there as `<unit>/s`.
LONGEST_UNIT, LONGEST_DEFINITION = 38, 600


class UnsupportedError(FlagPerfError):
    """The device or the framework cannot do an operation; the result says so, and the others are measured."""


@dataclass(frozen=True)
class Operation:
    """One thing whose rate is measured.

    Attributes:
        name: of its figure.
        unit: of the work, e.g. `TFLOP`; the figure's unit is that per second.
        work: how much of it one call does.
        definition: what the figure is, in words.
        start: makes what the operation works on, sees that its result is right, and gives what is to be timed:
            a call that gives the device its work and need not wait for it. Raises UnsupportedError where the
            device or the framework cannot do it, any other error where the result is wrong.
        peak: dtype of the chip's dense peak that the rate is a part of; None: of none.
    """

    name: str
    unit: str
    work: float
    definition: str
    start: Callable[[], Callable[[], object]]
    peak: str | None = None


def operations_of(case: Any) -> list[Operation]:
    """The operations of a case, each of which will be a figure.

    Raises:
        FlagPerfError: there is none, or one cannot be a figure: all that is wrong at once.
    """
    operations = list(case.operations())
    problems = [] if operations else ["operations gave none"]
    for number, operation in enumerate(operations, 1):
        problems += [f"operation {number}: {problem}" for problem in _problems(operation)]
    names = Counter(operation.name for operation in operations if isinstance(operation, Operation))
    problems += [f"{count} operations are called {name!r}" for name, count in names.items() if count > 1]
    if problems:
        remedy = "give an Operation for each figure (benchmarks/driver/operations.py)"
        raise case_error(case, "; ".join(problems), remedy)
    return operations


def _problems(operation: object) -> Iterator[str]:
    if not isinstance(operation, Operation):
        yield f"{kind_of(operation)} is no Operation"
        return
    for name in (operation.name, f"{operation.name}_spread"):
        if problem := name_problem(name):
            yield f"{name!r}: {problem}"
            break
    if not (is_number(operation.work) and math.isfinite(operation.work) and operation.work > 0):
        yield f"work is {kind_of(operation.work)}, not a finite number above 0"
    for field, longest in (("unit", LONGEST_UNIT), ("definition", LONGEST_DEFINITION)):
        yield from _text_problems(field, getattr(operation, field), longest)
    if operation.peak is not None and not str(operation.unit).endswith(("FLOP", "OP")):
        yield f"peak is {operation.peak!r}, but unit is {operation.unit!r}: a part of a peak is of FLOP or OP"
    if not callable(operation.start):
        yield f"start is {kind_of(operation.start)}, not a function"


def _text_problems(field: str, value: object, longest: int) -> Iterator[str]:
    if not (isinstance(value, str) and value.strip()):
        yield f"{field} is {value!r}: a figure needs one"
    elif len(value) > longest or not value.isprintable():
        yield f"{field} is longer than {longest} characters, or has line breaks"


class MeasurementCase(Protocol):
    """A case of the kind *measure*: the class `Case` of its `case.py`."""

    def __init__(self, context: Context[MeasurementSettings, Any]) -> None: ...

    def operations(self) -> Iterable[Operation]:
        """What is measured, in this order; on every rank the same."""


class WorkingCase(Protocol):
    """A case of the kind *measure* that no loop of the driver fits: it measures by itself."""

    def __init__(self, context: Context[MeasurementSettings, Any]) -> None: ...

    def work(self, engine: Engine[Any], perf_log: PerfLog) -> Mapping[str, Any]:
        """All of it, on every rank.

        Args:
            engine: group and device, which are ready, and the vendor's hooks. Who calls hooks writes HOOKS.
            perf_log: for events of the case's own.

        Returns:
            What FINISHED says besides times and memory; `figures` as `Measured.figures` gives them.
        """
