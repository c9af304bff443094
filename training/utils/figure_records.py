"""What a figure is: its value with its meaning, and the definition that all cases share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from utils.numbers import DIGITS, is_measurable

GIB = 2**30
FINISHED = "FINISHED event of global rank 0"
TRAINING = "TRAIN_START..TRAIN_END"
BEFORE = "first sample..start of the node's first rank"
HIGHER = "higher"
LOWER = "lower"
# Of power and energy: what is measured over less of its window than this is marked, ...
FULL_COVERAGE = 0.99
# ... and over less than this it is none: nobody can say what it is a part of.
LEAST_COVERAGE = 0.5


@dataclass(frozen=True)
class Figure:
    """A measured or derived number. `window` is the time it speaks of, `source` where it comes from.

    Where `value` is None, `source` says why there is none. `better` is "higher", "lower" or None, where
    neither is; `definition` is empty in results of earlier versions. `coverage` is the part of the window that was
    sampled, 0 to 1, None where nothing samples it. `caveat`: why the value is marked wherever it is shown. `scope`: of
    power and energy the part of a machine that they are of, as telemetry names it; empty for all other figures.
    """

    value: float | None
    unit: str
    window: str
    source: str
    better: str | None = None
    definition: str = ""
    coverage: float | None = None
    caveat: str = ""
    scope: str = ""

    def __post_init__(self) -> None:
        """A number that is none, as of a quotient that overflows, or an absurd one is not measured."""
        if self.value is not None and not is_measurable(self.value):
            object.__setattr__(self, "source", f"{self.value} is no figure: {self.source}")
            object.__setattr__(self, "value", None)


@dataclass(frozen=True)
class Peak:
    """What the chips can do: `chips` of them, each `flops` FLOP/s (dense) in the precision used."""

    chips: int
    flops: float | None
    source: str


# What computes a figure: from its definition, FINISHED's values and the chips' peak.
Formula = Callable[["Definition", Mapping[str, Any], Peak], Figure]


@dataclass(frozen=True)
class Definition:
    """What a figure is, whichever case reports it.

    absent: when there is none. formula: from FINISHED's values; None where it comes from elsewhere.
    heading: of its column in the tables; without one it has none. of_power: that is in the table of power.
    digits: how many significant ones are shown. of_all_parts: in a run that was continued it is of all of the run, not
    of the last part alone. of_metric: which way is better is the metric's own; `better` is that of most.
    """

    name: str
    unit: str
    window: str
    better: str | None
    definition: str
    absent: str
    formula: Formula | None = None
    heading: str = ""
    of_power: bool = False
    digits: int = DIGITS
    of_all_parts: bool = False
    of_metric: bool = False

    def figure(self, value: float | None, source: str) -> Figure:
        """The figure with this value, or the reason in `source` why there is none."""
        return Figure(value, self.unit, self.window, source, self.better, self.definition)
