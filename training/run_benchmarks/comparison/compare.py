"""The comparison of groups of rounds, case by case and figure by figure: docs/comparing.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from run_benchmarks.comparison.comparable import objections
from run_benchmarks.comparison.derived import NAMES, figures_of
from run_benchmarks.comparison.differences import differences
from run_benchmarks.comparison.gate import BETTER, HIGHER, LOWER, WORSE
from run_benchmarks.comparison.gating import gate_results
from run_benchmarks.comparison.pairing import Match, matches
from run_benchmarks.comparison.ratios import Ratio, holm, ratio_of
from run_benchmarks.comparison.records import Against, CaseComparison, Cell, Choice, Comparison, Row, Side
from run_benchmarks.comparison.selecting import ComparedRound, Group, groups_of
from run_benchmarks.comparison.statistics import OlympicMean, olympic_mean, summarise
from run_benchmarks.results.round_result import CONVERGE
from utils import figures as known
from utils.errors import FlagPerfError, nearest
from utils.figures import DEFINITIONS, Figure
from utils.numbers import counted
from utils.records import Verdict

MAIN = "p_train"  # what is asked for where nobody asks
LARGEST = 1e100  # what a stranger's folder has beyond it is no figure, and could not be summed up


def compare(selectors: Sequence[str], log_path: Path, choice: Choice) -> Comparison:
    """Set the groups that the selectors name against the first of them.

    Raises:
        FlagPerfError: a selector names nothing, no case is in two groups, or a figure is asked for that none has.
    """
    return compare_groups(groups_of(selectors, log_path), choice)


def compare_groups(groups: Sequence[Group], choice: Choice) -> Comparison:
    """The same of groups that have been read."""
    matched, unmatched = matches(groups)
    if not matched:
        raise FlagPerfError(
            f"no case of {groups[0].selector} is in another group: {'; '.join(unmatched)}",
            remedy="name the cases: RUN/CASE",
        )
    _check_names(choice, matched)
    cases = [_case(match, choice) for match in matched]
    return Comparison(
        schema=1,
        groups={group.letter: group.selector for group in groups},
        difference=choice.difference,
        cases=cases,
        gates=gate_results(choice.gates, cases),
        unmatched=unmatched,
        notes=[f"{group.letter}: {note}" for group in groups for note in group.notes],
    )


def _check_names(choice: Choice, matched: Sequence[Match]) -> None:
    """Refuse a figure that is named and that there is not."""
    there = {
        name for match in matched for side in match.values() for each in side for name in figures_of(each)
    }
    names = [("--figure", name) for name in choice.figures]
    names += [(f"--fail-if {gate.text!r}", name) for gate in choice.gates for name in gate.figures]
    for where, name in names:
        if name not in {*there, *DEFINITIONS, *NAMES}:
            remedy = nearest(name, there) or f"there are {', '.join(sorted(there)) or 'none'}"
            raise FlagPerfError(f"there is no figure {name}", where=where, remedy=remedy)


def _case(match: Match, choice: Choice) -> CaseComparison:
    against = objections(match)
    used = {letter: [each for each in rounds if _counts(each)] for letter, rounds in match.items()}
    refusals = list(against.refusals)
    missing = [letter for letter, rounds in used.items() if not rounds]
    rows: list[Row] = []
    if missing:
        refusals.append(f"no round of {', '.join(missing)} succeeded")
    elif not refusals or choice.even_if_not_comparable:
        gated = [name for gate in choice.gates for name in gate.figures]
        rows = list(_rows(used, [*choice.figures, *gated] if choice.figures else []))
        rows = _with_verdicts(rows, [*choice.figures, *gated] or _main(used))
    measured = [row for row in rows if any(cell.values for cell in row.cells.values())]
    return CaseComparison(
        sides=[_side(letter, rounds) for letter, rounds in match.items()],
        refusals=refusals,
        unknown=against.unknown,
        differences=differences(match),
        rows=measured,
        not_measured=[row.name for row in rows if row not in measured],
    )


def _counts(each: ComparedRound) -> bool:
    return each.result.verdict.is_success


def _side(letter: str, rounds: Sequence[ComparedRound]) -> Side:
    used = [each for each in rounds if _counts(each)]
    return Side(
        letter=letter,
        case=rounds[0].result.case,
        used=len(used),
        chips=list(dict.fromkeys(each.chips for each in rounds)),
        nodes=list(dict.fromkeys(each.nodes for each in rounds)),
        left_out=[f"{each}: {each.result.verdict.value}" for each in rounds if not _counts(each)],
        olympic=_olympic(rounds),
    )


def _olympic(rounds: Sequence[ComparedRound]) -> OlympicMean | None:
    """MLPerf's mean of the times to target; None for a case that has none, and where no round met its target."""
    of_training = [
        each for each in rounds if each.result.verdict in (Verdict.CONVERGED, Verdict.NOT_CONVERGED)
    ]
    times = [figures_of(each).get("time_to_target") for each in of_training]
    values = [time.value if time else None for time in times]
    if rounds[0].result.kind != CONVERGE or not any(values):
        return None
    return olympic_mean(values)


def _rows(used: Mapping[str, Sequence[ComparedRound]], only: Sequence[str]) -> Iterator[Row]:
    figures = {letter: [figures_of(each) for each in rounds] for letter, rounds in used.items()}
    there = dict.fromkeys(name for rounds in figures.values() for each in rounds for name in each)
    ordered = [name for name in (*DEFINITIONS, *NAMES) if name in there]
    ordered += [name for name in there if name not in DEFINITIONS and name not in NAMES]
    for name in dict.fromkeys(only or ordered):
        if name in there:
            sides = {letter: [each.get(name) for each in rounds] for letter, rounds in figures.items()}
            yield _row(name, sides)


def _row(name: str, sides: Mapping[str, Sequence[Figure | None]]) -> Row:
    base, *others = sides
    cells = {letter: _cell(figures) for letter, figures in sides.items()}
    first = next(each for figures in sides.values() for each in figures if each)
    against = {}
    for letter in others:
        reason = _not_one_figure(name, [*sides[base], *sides[letter]])
        absent = "; ".join(
            f"{each}: {cells[each].absent}" for each in (base, letter) if not cells[each].values
        )
        if reason or absent:
            against[letter] = Against(Ratio(None, reason=reason or f"no value of {absent}"))
        else:
            against[letter] = Against(ratio_of(cells[base].values, cells[letter].values))
    return Row(name, first.unit, first.better, first.definition, cells, against)


def _cell(figures: Sequence[Figure | None]) -> Cell:
    there = [each for each in figures if each and each.value is not None and abs(each.value) < LARGEST]
    values = [each.value for each in there if each.value is not None]
    caveats = list(dict.fromkeys(each.caveat for each in there if each.caveat))
    absent = "; ".join(dict.fromkeys(_why_absent(each) for each in figures if each not in there))
    if values and absent:
        caveats.append(f"{counted(len(figures) - len(values), 'round')} without a value: {absent}")
    return Cell(values, summarise(values) if values else None, absent, caveats)


def _why_absent(figure: Figure | None) -> str:
    if figure is None:
        return "not reported"
    return figure.source if figure.value is None else f"{figure.value} is no figure: it is above {LARGEST:g}"


def _not_one_figure(name: str, figures: Sequence[Figure | None]) -> str:
    """Why values under one name are no values of one figure."""
    there = [each for each in figures if each and each.value is not None]
    units = dict.fromkeys(each.unit for each in there)
    if len(units) > 1:
        return f"units differ: {', '.join(units)}"
    definitions = dict.fromkeys(each.definition for each in there)
    if name not in DEFINITIONS and name not in NAMES and len(definitions) > 1:
        return f"definitions differ: {' / '.join(definitions)}"
    return ""


def _main(used: Mapping[str, Sequence[ComparedRound]]) -> list[str]:
    """What is asked for where nobody asks: the training rate, or all that a case that measures defines itself."""
    rounds = next(iter(used.values()))
    if rounds[0].result.kind == CONVERGE:
        return [MAIN]
    return [
        name
        for name, each in figures_of(rounds[0]).items()
        if name not in (*DEFINITIONS, *NAMES) and each.better
    ]


def _with_verdicts(rows: Sequence[Row], asked: Sequence[str]) -> list[Row]:
    """The rows with what is shown: by Holm's method among those that are asked for, and among the rest."""
    tests = {
        (row.name, letter): against.ratio.p_value for row in rows for letter, against in row.against.items()
    }
    shown = holm({key: value for key, value in tests.items() if key[0] in asked})
    shown |= holm({key: value for key, value in tests.items() if key[0] not in asked})
    return [
        replace(
            row,
            is_asked=row.name in asked,
            against={
                letter: _judged(against, row.better, is_shown=(row.name, letter) in shown)
                for letter, against in row.against.items()
            },
        )
        for row in rows
    ]


def _judged(against: Against, better: str | None, *, is_shown: bool) -> Against:
    low, high = against.ratio.interval or (1.0, 1.0)
    if not is_shown:
        return replace(against, held_back=not low <= 1.0 <= high)
    is_higher = (against.ratio.value or 1.0) > 1.0
    if better is None:
        return replace(against, direction=HIGHER if is_higher else LOWER)
    return replace(against, direction=BETTER if is_higher == (better == known.HIGHER) else WORSE)
