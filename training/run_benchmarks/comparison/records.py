"""The records of a comparison: what `compare --format json` writes, and what every other form is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, geometric_mean
from typing import Final, Literal

from run_benchmarks.comparison.differences import Difference
from run_benchmarks.comparison.ratios import NOT_COMPARABLE, Ratio
from run_benchmarks.comparison.statistics import OlympicMean, Summary
from run_benchmarks.reading import Record
from utils.numbers import counted

SCHEMA = 1  # of the JSON: docs/schemas/comparison.schema.json
COMPARED: Final = "compared"
COMPARED_ANYWAY: Final = "compared though not comparable"


@dataclass(frozen=True)
class Side:
    """A group's rounds of one case. used: how many count, of so many `runs`; left_out: why others do not.

    not_run: how many were planned besides, and have not begun, or still go on.
    one_seed: those that count are of a training, are several, and all began with the same seeds.
    again: each attempt that failed by the machines' fault before one that counts, and why.
    """

    letter: str
    case: str
    used: int
    runs: int
    chips: Sequence[int | None]
    nodes: Sequence[int]
    left_out: Sequence[str]
    olympic: OlympicMean | None
    one_seed: bool = False
    not_run: int = 0
    again: Sequence[str] = ()

    @property
    def planned(self) -> int:
        """All its rounds."""
        return self.used + len(self.left_out) + self.not_run

    @property
    def missing_part(self) -> float:
        """Of all its rounds those that are no success, or not yet."""
        return 1 - self.used / self.planned

    @property
    def misses(self) -> str:
        """How many of its rounds did not succeed, or are not there; empty where all succeeded."""
        whole = f"of {counted(self.planned, 'round')} of {self.letter}"
        parts = {"did not succeed": len(self.left_out), "were planned and are not there": self.not_run}
        return ", ".join(f"{count} {whole} {what}" for what, count in parts.items() if count)


@dataclass(frozen=True)
class Cell:
    """A figure on one side: its values by round, what they come to, or why there is none.

    runs: the number of each value's run among those of the side.
    """

    values: Sequence[float]
    runs: Sequence[int]
    summary: Summary | None
    absent: str = ""
    caveats: Sequence[str] = ()

    def centre(self, *, of_runs: bool) -> float | None:
        """The geometric mean, of which ratios are, of its rounds or of its runs' own; of what is not above 0 the
        arithmetic one.
        """
        if not self.values:
            return None
        mean = geometric_mean if min(self.values) > 0 else fmean
        return mean([mean(run) for run in self.by_run] if of_runs else self.values)

    @property
    def by_run(self) -> list[list[float]]:
        """The values, those of a run together."""
        pairs = list(zip(self.runs, self.values, strict=True))
        return [[value for run, value in pairs if run == each] for each in dict.fromkeys(self.runs)]


@dataclass(frozen=True)
class Row:
    """A figure on all sides. cells: by letter; against: by the letters of the sides that are no base.

    is_asked: it is one of those that were asked for, whose tests are a family of their own.
    """

    name: str
    unit: str
    better: str | None
    definition: str
    cells: Mapping[str, Cell]
    against: Mapping[str, Ratio]
    is_asked: bool = False


@dataclass(frozen=True)
class CaseComparison:
    """A case on several sides, the base first. verdict: whether it is compared; refusals: why it was not to be.

    unknown: what nobody can tell of it. rows: empty where it is refused. not_measured: figures that no side has.
    """

    verdict: Literal["compared", "compared though not comparable", "not comparable"]
    sides: Sequence[Side]
    refusals: Sequence[str]
    unknown: Sequence[str]
    differences: Sequence[Difference]
    rows: Sequence[Row]
    not_measured: Sequence[str]

    @property
    def name(self) -> str:
        """The base's case, and those of others where they have another name."""
        return " / ".join(dict.fromkeys(side.case for side in self.sides))

    @property
    def is_refused(self) -> bool:
        """Whether it was not compared."""
        return self.verdict == NOT_COMPARABLE


@dataclass(frozen=True)
class GateResult:
    """A condition on a side of a case. failures: why it fails; skipped: why it says nothing of this case."""

    condition: str
    case: str
    letter: str
    failures: Sequence[str] = ()
    skipped: str = ""


@dataclass(frozen=True)
class Comparison(Record):
    """Everything. groups: letter -> selector; unmatched: cases that are only in some groups; notes: of the runs."""

    schema: int
    groups: Mapping[str, str]
    difference: float
    cases: Sequence[CaseComparison]
    gates: Sequence[GateResult]
    unmatched: Sequence[str]
    notes: Sequence[str]

    @property
    def is_refused(self) -> bool:
        """Whether a case was not compared."""
        return any(case.is_refused for case in self.cases)

    @property
    def fails(self) -> bool:
        """Whether a gate fails."""
        return any(gate.failures for gate in self.gates)
