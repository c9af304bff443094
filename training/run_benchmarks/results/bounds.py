"""How much of a folder that anybody may have written is taken: of what tables have a row, or a column, of.

A table of all names in all rounds grows with the product of the two, which a file of the largest size makes millions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import islice
from typing import Annotated

from pydantic import Field

from run_benchmarks.plan.host_ranges import LONGEST_HOST
from run_benchmarks.reading import parsed
from run_benchmarks.results.folder import RoundKey, RunFolder
from run_benchmarks.results.round_result import MOST_HOSTS, RoundResult
from run_benchmarks.stages.checks import Check
from utils.errors import FlagPerfError

MOST_RESULTS = 10_000
MOST_FIGURES = 2_000  # by name, of all rounds of a case together
MOST_CHECKS = 100  # by name, of all hosts together
LONGEST_CHECK = 100  # characters of its name
_Host = Annotated[str, Field(max_length=LONGEST_HOST)]
_Checks = Annotated[
    dict[_Host, Annotated[list[Check], Field(max_length=MOST_CHECKS)]], Field(max_length=MOST_HOSTS)
]


def bounded(folder: RunFolder, results: Mapping[RoundKey, RoundResult]) -> dict[RoundKey, RoundResult]:
    """The first results, with those figures that are not too many; what is left out is noted."""
    if len(results) > MOST_RESULTS:
        folder.notes.append(f"{len(results)} results: those after the first {MOST_RESULTS} are left out")
    taken = dict(islice(results.items(), MOST_RESULTS))
    names: dict[str, dict[str, None]] = {}
    for result in taken.values():
        names.setdefault(result.case, {}).update(dict.fromkeys(result.figures))
    for case, of_case in names.items():
        if len(of_case) > MOST_FIGURES:
            note = f"its rounds have {len(of_case)} figures, those after {MOST_FIGURES} are left out"
            folder.notes.append(f"case {case}: {note}")
    kept = {case: frozenset(islice(of_case, MOST_FIGURES)) for case, of_case in names.items()}
    return {key: _with(kept[result.case], result) for key, result in taken.items()}


def _with(names: Collection[str], result: RoundResult) -> RoundResult:
    """The result with those of its figures that have these names."""
    figures = {name: figure for name, figure in result.figures.items() if name in names}
    return result if len(figures) == len(result.figures) else replace(result, figures=figures)


def checks_in(folder: RunFolder) -> dict[str, list[Check]]:
    """What the preflight saw by the run's summary, host by host; what cannot be read or is too much is noted."""
    where = f"{folder.path / 'summary.json'}: preflight"
    try:
        checks: dict[str, list[Check]] = parsed(_Checks, folder.summary.get("preflight") or {}, where)
        names = {check.name for of_host in checks.values() for check in of_host}
        if len(names) > MOST_CHECKS:
            raise FlagPerfError(f"holds more than {MOST_CHECKS} checks of different names", where=where)
        if any(len(name) > LONGEST_CHECK for name in names):
            raise FlagPerfError(f"the name of a check has more than {LONGEST_CHECK} characters", where=where)
        return checks
    except FlagPerfError as error:
        folder.note(error)
        return {}
