"""What the conformance kit says of a vendor's folder: checks, each with its outcome, and the report of all of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Literal

from run_benchmarks.reading import Record, parsed, read_object

REPORT_FILE = "conformance.json"
LARGEST_REPORT = 2**20  # bytes: a check has some 300


class CheckOutcome(str, Enum):
    """What came of a check. NOT_PROVEN: it could not be looked at here, and the detail says why."""

    FAILED = "FAILED"
    NOT_PROVEN = "NOT_PROVEN"
    PASSED = "PASSED"


@dataclass(frozen=True)
class CheckResult:
    """One thing that was looked at.

    part: of the kit (`static`, `monitor`, ...), which the kit fills in. where: a file of the vendor's, with its line
    where there is one. detail: what was seen. remedy: what to do about it.
    """

    part: str
    name: str
    outcome: CheckOutcome
    where: str = ""
    detail: str = ""
    remedy: str = ""


@dataclass(frozen=True, kw_only=True)
class ConformanceReport(Record):
    """All that was looked at in one go.

    harness: the commit of FlagPerf's that looked; empty where that is not known, with `+` where its code was changed.
    date: in UTC, as ISO 8601 has it. hardware: the vendor's devices on the machine that looked, `8 x NAME` each kind;
    none: nothing here was seen on a chip.
    """

    vendor: str
    harness: str
    date: str
    hardware: tuple[str, ...] = ()
    checks: tuple[CheckResult, ...] = ()
    schema: Literal[1] = 1

    def as_json(self) -> str:
        """The report as a file holds it."""
        return f"{json.dumps(self.as_dict(), indent=2)}\n"

    def of(self, outcome: CheckOutcome) -> tuple[CheckResult, ...]:
        """The checks with this outcome."""
        return tuple(check for check in self.checks if check.outcome is outcome)


@dataclass(frozen=True)
class Options:
    """What a part is told besides the folder.

    python: the interpreter that has the vendor's framework. devices: what the vendor's own command lists on this
    machine, as `parse_device_list` has it; none: there is no chip here.
    """

    python: Path
    devices: tuple[str, ...] = ()


Part = Callable[[Path, Options], Iterator[CheckResult]]


def failed(detail: str, where: Path | str = "", remedy: str = "") -> CheckResult:
    """A check that failed; `named` says of what."""
    return CheckResult("", "", CheckOutcome.FAILED, str(where), detail, remedy)


def not_proven(detail: str, where: Path | str = "", remedy: str = "") -> CheckResult:
    """A check that could not be made; `named` says of what."""
    return CheckResult("", "", CheckOutcome.NOT_PROVEN, str(where), detail, remedy)


def named(name: str, trouble: Iterable[CheckResult], detail: str = "") -> Iterator[CheckResult]:
    """All `trouble` under the name of what was looked at; where there is none, that it passed, with this detail."""
    empty = True
    for check in trouble:
        empty = False
        yield replace(check, name=name)
    if empty:
        yield CheckResult("", name, CheckOutcome.PASSED, detail=detail)


def read_report(path: Path) -> ConformanceReport | None:
    """A report as somebody wrote it; None where there is none.

    Raises:
        FlagPerfError: the file is no such report.
    """
    content = read_object(path, LARGEST_REPORT)
    return None if content is None else parsed(ConformanceReport, content, str(path))
