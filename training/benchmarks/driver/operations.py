"""What a case of the kind *measure* brings: operations. The measurement loop is the driver's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from benchmarks.driver.case import Context
from utils.errors import FlagPerfError
from utils.parameters import MeasurementSettings


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


class MeasurementCase(Protocol):
    """A case of the kind *measure*: the class `Case` of its `case.py`."""

    def __init__(self, context: Context[MeasurementSettings, Any]) -> None: ...

    def operations(self) -> Iterable[Operation]:
        """What is measured, in this order; on every rank the same."""
