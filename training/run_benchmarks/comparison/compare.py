"""The comparison of groups of rounds, case by case and figure by figure: docs/comparing.md."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from run_benchmarks.comparison.comparable import objections
from run_benchmarks.comparison.derived import NAMES, TO_TARGET, figures_of
from run_benchmarks.comparison.differences import differences
from run_benchmarks.comparison.gate import Gate, gate_results
from run_benchmarks.comparison.pairing import Match, matches
from run_benchmarks.comparison.ratios import (
    BETTER,
    NOT_COMPARABLE,
    NOT_SHOWN,
    WORSE,
    Ratio,
    holm,
    needed,
    ratio_of_runs,
    word_of,
)
from run_benchmarks.comparison.records import (
    COMPARED,
    COMPARED_ANYWAY,
    SCHEMA,
    CaseComparison,
    Cell,
    Comparison,
    Row,
    Side,
)
from run_benchmarks.comparison.selecting import ComparedRound, Group
from run_benchmarks.comparison.statistics import olympic_mean_of, summarise
from run_benchmarks.results.round_result import CONVERGE, RoundResult
from utils.errors import FlagPerfError, nearest
from utils.figures import DEFINITIONS, HIGHER, LOWER, Figure
from utils.numbers import counted

MAIN = "p_train"  # what is asked for where nobody asks
DIFFERENCE = 0.05  # that rounds are to show where nothing else is asked for
REGISTERED = (*DEFINITIONS, *NAMES)  # all other figures are a case's own
# What values of one figure share, in words; the definition only of a case's own figures.
TRAITS = {
    "unit": "units",
    "better": "the ways that are better",
    "scope": "the parts of a machine that were measured",
    "definition": "definitions",
}
# Of these every round of a case has the same, whatever its seed; rounds that agree in others repeat each other.
FIXED = ("mem", "mem_reserved", "mem_total")
# Rounds of a side that did not meet its target: with more its set is invalid by MLPerf's rule, too.
MOST_UNMET = 1
NUMBER = re.compile(r"\d{1,20}(?:\.\d{1,20})?", re.ASCII)
Sides = Mapping[str, Sequence[Mapping[str, Figure]]]
Runs = Mapping[str, Sequence[int]]


@dataclass(frozen=True)
class Choice:
    """How to compare.

    figures: the only ones that are compared; none for all. gates: conditions; the figures that they name are asked for.
    difference: that rounds are to show, as a part.
    """

    figures: Sequence[str] = ()
    gates: Sequence[Gate] = ()
    difference: float = DIFFERENCE
    even_if_not_comparable: bool = False

    @property
    def asked(self) -> list[str]:
        """The figures that are asked for; empty where nobody asks."""
        return [*self.figures, *(name for gate in self.gates for name in gate.figures)]


def compare(groups: Sequence[Group], choice: Choice) -> Comparison:
    """Set groups of rounds against the first of them.

    Raises:
        FlagPerfError: no case is in two groups, or a figure is asked for that none has.
    """
    matched, unmatched = matches(groups)
    if not matched:
        message = f"no case of {groups[0].selector} is in another group: {'; '.join(map(str, unmatched))}"
        raise FlagPerfError(message, remedy="name the cases: RUN/CASE")
    _check_names(choice, matched)
    by_letter = {group.letter: group for group in groups}
    cases = [_case(match, by_letter, choice) for match in matched]
    return Comparison(
        schema=SCHEMA,
        groups={group.letter: group.selector for group in groups},
        difference=choice.difference,
        cases=cases,
        gates=gate_results(choice.gates, cases, unmatched),
        unmatched=list(map(str, unmatched)),
        notes=[f"{group.letter}: {note}" for group in groups for note in group.notes],
    )


def _check_names(choice: Choice, matched: Sequence[Match]) -> None:
    """Refuse a figure that is named and that there is not."""
    rounds = [each for match in matched for side in match.values() for each in side]
    there = {name for each in rounds for name in figures_of(each)}
    names = [("--figure", name) for name in choice.figures]
    names += [(f"--fail-if {gate.text!r}", name) for gate in choice.gates for name in gate.figures]
    known = {*there, *REGISTERED}
    for where, name in names:
        if name not in known:
            remedy = nearest(name, there) or f"there are {', '.join(sorted(there)) or 'none'}"
            raise FlagPerfError(f"there is no figure {name}", where=where, remedy=remedy)


def _case(match: Match, groups: Mapping[str, Group], choice: Choice) -> CaseComparison:
    refusals, unknown = objections(match)
    used = {letter: [each for each in rounds if each.counts] for letter, rounds in match.items()}
    missing = [letter for letter, rounds in used.items() if not rounds]
    sides = [_side(rounds, groups[letter]) for letter, rounds in match.items()]
    rows: list[Row] = []
    if missing:
        refusals.append(f"no round of {', '.join(missing)} succeeded")
    elif not refusals or choice.even_if_not_comparable:
        rows = _rows(used, choice, {side.letter: side for side in sides})
    measured = {row.name: row for row in rows if any(cell.values for cell in row.cells.values())}
    return CaseComparison(
        verdict=(COMPARED_ANYWAY if measured else NOT_COMPARABLE) if refusals else COMPARED,
        sides=sides,
        refusals=refusals,
        unknown=unknown,
        differences=differences(match),
        rows=list(measured.values()),
        not_measured=[row.name for row in rows if row.name not in measured],
    )


def _side(rounds: Sequence[ComparedRound], group: Group) -> Side:
    case = rounds[0].result.case
    lost = group.lost.get(case, ())
    failed = [f"{each}: {each.result.verdict.value}" for each in rounds if not each.counts]
    return Side(
        letter=group.letter,
        case=case,
        used=sum(each.counts for each in rounds),
        runs=len({each.run_key for each in rounds if each.counts}),
        chips=list(dict.fromkeys(each.chips for each in rounds)),
        nodes=list(dict.fromkeys(each.nodes for each in rounds)),
        left_out=[*failed, *lost],
        again=[
            f"{each}: {attempt.cause}" for each in rounds if each.counts for attempt in each.result.attempts
        ],
        olympic=olympic_mean_of([each.result for each in rounds], len(lost)),
        one_seed=_has_one_seed([each.result for each in rounds if each.counts]),
        not_run=group.not_run.get(case, 0),
    )


def _has_one_seed(results: Sequence[RoundResult]) -> bool:
    seeds = [each.provenance.seeds if each.provenance else {} for each in results if each.kind == CONVERGE]
    return len(seeds) > 1 and bool(seeds[0]) and all(each == seeds[0] for each in seeds)


def _rows(
    used: Mapping[str, Sequence[ComparedRound]], choice: Choice, sides: Mapping[str, Side]
) -> list[Row]:
    """A row a figure; what is shown is so by Holm's method among those that are asked for, and among the rest."""
    figures = {letter: [figures_of(each) for each in rounds] for letter, rounds in used.items()}
    runs = {letter: _numbered([each.run_key for each in rounds]) for letter, rounds in used.items()}
    there = dict.fromkeys(name for of_side in figures.values() for each in of_side for name in each)
    is_training = next(iter(used.values()))[0].result.kind == CONVERGE
    unmet = {each: side for each, side in sides.items() if side.misses and is_training}
    own = [name for name in there if name not in REGISTERED]
    wanted = choice.asked if choice.figures else [*REGISTERED, *own]
    asked = frozenset(choice.asked or _main(used, own))
    rows = [
        _row(name, figures, runs, unmet if name in TO_TARGET else {}, is_asked=name in asked)
        for name in dict.fromkeys(wanted)
        if name in there
    ]
    tests = {(row.name, letter): each.p_value for row in rows for letter, each in row.against.items()}
    shown = holm({key: value for key, value in tests.items() if key[0] in asked})
    shown |= holm({key: value for key, value in tests.items() if key[0] not in asked})
    return [
        _judged(row, {letter for letter in row.against if (row.name, letter) in shown}, choice.difference)
        for row in rows
    ]


def _numbered(keys: Sequence[str]) -> list[int]:
    """Each key's number among those that differ."""
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    return [numbers[key] for key in keys]


def _main(used: Mapping[str, Sequence[ComparedRound]], own: Sequence[str]) -> list[str]:
    """What is asked for where nobody asks: the training rate, or all that a case that measures defines itself."""
    first = next(iter(used.values()))[0].result
    if first.kind == CONVERGE:
        return [MAIN]
    return [name for name in own if name in first.figures and first.figures[name].better]


def _row(name: str, sides: Sides, runs: Runs, unmet: Mapping[str, Side], *, is_asked: bool) -> Row:
    """A figure on all sides.

    Args:
        sides: letter -> every round's figures; runs: the numbers of their runs.
        unmet: the sides that have rounds of which it can have no value.
    """
    figures = {letter: [each.get(name) for each in rounds] for letter, rounds in sides.items()}
    cells = {letter: _cell(name, of_side, runs[letter]) for letter, of_side in figures.items()}
    notes = {letter: [side.misses] for letter, side in unmet.items()} or _windows(name, figures)
    for letter, of_side in notes.items():
        cells[letter] = replace(cells[letter], caveats=[*cells[letter].caveats, *of_side])
    base, *others = figures
    first = next(each for of_side in figures.values() for each in of_side if each)
    against = {}
    for letter in others:
        reason = _no_ratio({each: cells[each] for each in (base, letter)}, unmet)
        reason = reason or _not_one_figure(name, [*figures[base], *figures[letter]])
        values, is_fixed = (cells[base].by_run, cells[letter].by_run), name in FIXED
        against[letter] = Ratio(None, reason=reason) if reason else ratio_of_runs(*values, is_fixed=is_fixed)
    return Row(name, first.unit, first.better, first.definition, cells, against, is_asked)


def _windows(name: str, sides: Mapping[str, Sequence[Figure | None]]) -> dict[str, list[str]]:
    """When each side measured a case's own figure, where that differs by more than what each round's own numbers do."""
    first = {letter: next((each.window for each in of_side if each), "") for letter, of_side in sides.items()}
    rough = {NUMBER.sub(_magnitude, each.window) for of_side in sides.values() for each in of_side if each}
    if name in REGISTERED or len(rough) < 2:
        return {}
    return {letter: [f"measured by {letter} over: {window}"] for letter, window in first.items() if window}


def _magnitude(match: re.Match[str]) -> str:
    """A number's order of magnitude."""
    return f"{float(match[0]):.0e}"[1:]


def _no_ratio(cells: Mapping[str, Cell], unmet: Mapping[str, Side]) -> str:
    """Why sides with these cells have no ratio: no values, or only those of the rounds that were fast enough."""
    if absent := [f"{letter}: {cell.absent}" for letter, cell in cells.items() if not cell.values]:
        return f"no value of {'; '.join(absent)}"
    many = [unmet[each].misses for each in cells if each in unmet and len(unmet[each].left_out) > MOST_UNMET]
    return f"{'; '.join(many)}: of the fast ones alone nobody can judge" if many else ""


def _cell(name: str, figures: Sequence[Figure | None], runs: Sequence[int]) -> Cell:
    if reason := _not_one_figure(name, figures):
        return Cell([], [], None, reason)
    there = [each for each in figures if each and each.value is not None]
    values = [each.value for each in there if each.value is not None]
    caveats = list(dict.fromkeys(each.caveat for each in there if each.caveat))
    reasons = (each.source if each else "not reported" for each in figures if not each or each.value is None)
    absent = "; ".join(dict.fromkeys(reasons))
    if values and absent:
        caveats.append(f"{counted(len(figures) - len(values), 'round')} without a value: {absent}")
    of_runs = [run for each, run in zip(figures, runs, strict=True) if each and each.value is not None]
    return Cell(values, of_runs, summarise(values) if values else None, absent, caveats)


def _not_one_figure(name: str, figures: Sequence[Figure | None]) -> str:
    """Why values under one name are no values of one figure."""
    there = [each for each in figures if each and each.value is not None]
    for trait, what in TRAITS.items():
        values = dict.fromkeys(str(getattr(each, trait) or "neither") for each in there)
        if len(values) > 1 and not (trait == "definition" and name in REGISTERED):
            return f"{what} differ: {' / '.join(values)}"
    return ""


def _judged(row: Row, shown: set[str], difference: float) -> Row:
    """The row with what is shown of the sides of these letters, and what is not of the others."""
    judged = {}
    for letter, ratio in row.against.items():
        low, high = ratio.interval or (1.0, 1.0)
        direction = HIGHER if (ratio.value or 1.0) > 1.0 else LOWER
        if row.better:
            direction = BETTER if direction == row.better else WORSE
        if letter in shown:
            judged[letter] = replace(ratio, direction=direction, verdict=word_of(direction, row.unit))
        elif ratio.value is not None:
            judged[letter] = replace(
                ratio,
                verdict=NOT_SHOWN,
                held_back=not low <= 1.0 <= high,
                rounds_needed=needed(ratio, difference),
            )
    return replace(row, against={**row.against, **judged})
