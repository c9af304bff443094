"""A comparison to be read: headings, sentences and tables, in order; `forms` makes text and Markdown of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from run_benchmarks.comparison.differences import Difference
from run_benchmarks.comparison.pareto import Picture, pictures
from run_benchmarks.comparison.ratios import BETTER, NOT_SHOWN, RUN, WORSE, Ratio, would_do
from run_benchmarks.comparison.records import CaseComparison, Cell, Comparison, Row, Side
from run_benchmarks.comparison.statistics import CONFIDENCE, HEADINGS, interval_text
from run_benchmarks.results.table import NOT_MEASURED, Table
from utils.numbers import counted, digits_apart, shown

MOST_DIFFERENCES = 40  # of a part that are shown; the JSON has all
HELD_BACK = "the interval by itself is without 1, but among so many figures that shows nothing (Holm)"
HOW = (
    f"Ratios are of geometric means, which stand beside them; intervals and verdicts are of t tests on logarithms (the "
    f"wider of Welch's and Student's), {CONFIDENCE:.0%}; figures that nobody asked for are judged together (Holm). "
    f"docs/comparing.md of FlagPerf says why."
)
# Of code, images and data: its beginning tells it from others.
_DIGEST = re.compile(r"\b([0-9a-f]{16})[0-9a-f]{24,}\b")
GOOD, BAD, PLAIN = "good", "bad", ""
KINDS = {BETTER: GOOD, WORSE: BAD}


@dataclass(frozen=True)
class Heading:
    """A heading; level 1 is the whole's."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Lines:
    """Sentences, each for itself. kind: good, bad or nothing, for those that are a verdict."""

    lines: Sequence[str]
    kind: str = PLAIN


@dataclass(frozen=True)
class Ratios:
    """A table of figures of a side against the base, a row a ratio."""

    table: Table
    ratios: Sequence[Ratio]


Tabular = Table | Ratios | Picture
Block = Heading | Lines | Tabular


def blocks(comparison: Comparison, *, is_brief: bool) -> Iterator[Block]:
    """The comparison in the order in which it is read.

    Args:
        is_brief: statistics over rounds of those figures alone that were asked for.
    """
    yield Heading(f"Comparison with {next(iter(comparison.groups.values()))}", 1)
    yield Table(("", "rounds of"), tuple(comparison.groups.items()), fixed=1)
    yield from _lines(comparison.unmatched)
    for case in comparison.cases:
        yield from _case(case, comparison.difference, is_brief=is_brief)
    if comparison.gates:
        yield Heading("Gate")
        yield from (_gate(comparison, failed=failed) for failed in (True, False))
    yield Lines([HOW])
    if comparison.notes:
        yield Heading("What is missing of the runs")
        yield Lines(comparison.notes)


def _case(case: CaseComparison, difference: float, *, is_brief: bool) -> Iterator[Block]:
    yield Heading(case.name)
    yield from _verdicts(case, difference)
    yield _sides(case)
    yield from _lines(_about_sides(case))
    yield from _differences(case)
    for side in case.sides[1:] if case.rows else ():
        yield Heading(f"{side.letter} against {case.sides[0].letter}", 3)
        yield _figures(case, side)
    yield from _lines(
        [f"Not measured on any side: {', '.join(case.not_measured)}"] if case.not_measured else []
    )
    if rows := [row for row in case.rows if row.is_asked or not is_brief]:
        yield Heading("Statistics over rounds", 3)
        yield _statistics(rows)
    yield from pictures(case)


def verdict_text(ratio: Ratio) -> str:
    """faster, slower, ... or that no difference is shown, and why none can be."""
    if ratio.value is None:
        return NOT_MEASURED
    too_few = ratio.verdict == NOT_SHOWN and ratio.p_value is None
    return f"{ratio.verdict}: too few {ratio.unit}s" if too_few else ratio.verdict


def _lines(lines: Sequence[str]) -> Iterator[Lines]:
    if lines:
        yield Lines(lines)


def _verdicts(case: CaseComparison, difference: float) -> Iterator[Lines]:
    """The answers to what was asked, first."""
    base = case.sides[0].letter
    if case.refusals:
        head = "NOT COMPARABLE" if case.is_refused else "NOT COMPARABLE, compared all the same"
        yield Lines([f"{head}: {reason}" for reason in case.refusals], BAD)
    for row in (row for row in case.rows if row.is_asked):
        for letter, ratio in row.against.items():
            pair = [side for side in case.sides if side.letter in (base, letter)]
            answer = f"{letter} against {base}: {_answer(row, ratio, pair, difference)}"
            yield Lines([answer], KINDS.get(ratio.direction, PLAIN))


def _answer(row: Row, ratio: Ratio, sides: Sequence[Side], difference: float) -> str:
    if ratio.value is None:
        return f"{row.name}: {ratio.reason}"
    interval = f" [{interval_text(ratio.interval, 1.0)}]" if ratio.interval else ""
    text = f"{row.name} {_value(ratio)} times{interval}"
    if ratio.direction:
        reasons = _reasons(ratio, [row.cells[side.letter] for side in sides])
        reasons += ["of these runs alone: another may differ"] if any(map(_is_of_one_run, sides)) else []
        return f"{text}: {ratio.verdict}" + (f" ({'; '.join(reasons)})" if reasons else "")
    reasons = [ratio.reason, HELD_BACK if ratio.held_back else "", would_do(ratio, difference)]
    return f"{text}: {NOT_SHOWN} ({'; '.join(filter(None, reasons))})"


def _sides(case: CaseComparison) -> Table:
    rows = tuple(
        (
            side.letter,
            side.case,
            str(side.used) if side.used == side.planned else f"{side.used} of {side.planned}",
            str(side.runs),
            _joined(side.chips),
            _joined(side.nodes),
            side.olympic.text() if side.olympic else NOT_MEASURED,
        )
        for side in case.sides
    )
    return Table(("", "case", "rounds", "runs", "chips", "nodes", "MLPerf mean s"), rows, fixed=2)


def _joined(values: Sequence[int | None]) -> str:
    return " | ".join("not known" if value is None else str(value) for value in values)


def _about_sides(case: CaseComparison) -> list[str]:
    left_out = [f"left out, for it did not succeed: {each}" for side in case.sides for each in side.left_out]
    not_run = [
        f"planned, and not there: {counted(side.not_run, 'round')} of {side.letter} (a run was cut off, or goes on)"
        for side in case.sides
        if side.not_run
    ]
    again = [f"an attempt before it does not count: {each}" for side in case.sides for each in side.again]
    olympic = [side.olympic.note(side.letter) for side in case.sides if side.olympic]
    return [
        *left_out,
        *not_run,
        *again,
        *_again(case),
        *filter(None, olympic),
        *(_limits(case) if case.rows else ()),
        *case.unknown,
    ]


def _again(case: CaseComparison) -> Iterator[str]:
    """That sides differ in how many attempts their rounds took: what failed is in no figure."""
    if len({len(side.again) / max(1, side.used) for side in case.sides}) > 1:
        took = ", ".join(f"{len(side.again)} of {side.letter}" for side in case.sides)
        yield f"sides differ in how often rounds were run again, by the machines' fault: {took}; no figure shows it"


def _limits(case: CaseComparison) -> Iterator[str]:
    """What rounds of one run, and a training's rounds that all begin alike, do not tell."""
    for sides, what in (
        (
            [side.letter for side in case.sides if _is_of_one_run(side)],
            "are of one run: how much one run differs from the next is in no interval (several runs a side tell it)",
        ),
        (
            [side.letter for side in case.sides if side.one_seed],
            "began with the same seeds: of quality, steps and time to target nobody can tell what others would give "
            "(seed_step = 1)",
        ),
    ):
        if sides:
            yield f"{', '.join(sides)}: all rounds of {'each' if len(sides) > 1 else 'it'} {what}"


def _is_of_one_run(side: Side) -> bool:
    return side.runs == 1 < side.used


def _differences(case: CaseComparison) -> Iterator[Block]:
    """A table of all parts, and what is left of one that is long."""
    yield Heading("What differs", 3)
    letters = tuple(side.letter for side in case.sides)
    parts: dict[str, list[Difference]] = {}
    for each in case.differences:
        parts.setdefault(each.part, []).append(each)
    rows = tuple(
        (part, each.name, *(_DIGEST.sub(r"\1...", each.values[letter]) for letter in letters))
        for part, of_part in parts.items()
        for each in of_part[:MOST_DIFFERENCES]
    )
    if rows:
        yield Table(("part", "what", *letters), rows, fixed=2, is_grouped=True)
    more = {part: len(of_part) - MOST_DIFFERENCES for part, of_part in parts.items()}
    notes = [f"{count} more in {part}" for part, count in more.items() if count > 0]
    yield from _lines(notes if rows else ["nothing that is known"])


def _figures(case: CaseComparison, side: Side) -> Ratios:
    """Every figure of a side against the base."""
    base, letter = case.sides[0].letter, side.letter
    notes: dict[str, list[str]] = {}
    rows = []
    for row in case.rows:
        ratio, cells = row.against[letter], [row.cells[base], row.cells[letter]]
        reasons = _reasons(ratio, cells)
        for reason in reasons:
            notes.setdefault(reason, []).append(row.name)
        verdict = verdict_text(ratio) + ("*" if reasons else "")
        about = (row.name, row.unit, row.better or NOT_MEASURED, *_means(cells, of_runs=ratio.unit == RUN))
        rows.append((*about, _value(ratio), interval_text(ratio.interval, 1.0), verdict))
    headings = (
        "figure",
        "unit",
        "better",
        base,
        letter,
        f"{letter}/{base}",
        f"{CONFIDENCE:.0%} interval",
        "verdict",
    )
    footnotes = tuple(
        f"* {'all' if len(names) == len(rows) else ', '.join(names)}: {reason}"
        for reason, names in notes.items()
    )
    table = Table(headings, tuple(rows), fixed=1, footnotes=footnotes)
    return Ratios(table, [row.against[letter] for row in case.rows])


def _reasons(ratio: Ratio, cells: Sequence[Cell]) -> list[str]:
    """Why a verdict is marked."""
    caveats = [caveat for cell in cells for caveat in cell.caveats]
    reasons = [ratio.reason, HELD_BACK if ratio.held_back else "", *caveats]
    return list(filter(None, dict.fromkeys(reasons)))


def _means(cells: Sequence[Cell], *, of_runs: bool) -> list[str]:
    """The sides' geometric means, with as many digits as show that they differ."""
    centres = [cell.centre(of_runs=of_runs) for cell in cells]
    digits = digits_apart([each for each in centres if each is not None], 4)
    return [NOT_MEASURED if each is None else shown(each, digits) for each in centres]


def _value(ratio: Ratio) -> str:
    """The ratio, with as many digits as show on which side of 1 it is."""
    if ratio.value is None:
        return NOT_MEASURED
    return shown(ratio.value, digits_apart([ratio.value, 1.0, *(ratio.interval or ())], 4))


def _statistics(rows: Sequence[Row]) -> Table:
    summaries = [
        (row.name, letter, cell.summary) for row in rows for letter, cell in row.cells.items() if cell.summary
    ]
    lines = tuple((name, letter, *summary.cells()) for name, letter, summary in summaries)
    reasons = dict.fromkeys(summary.no_interval for *_, summary in summaries if summary.no_interval)
    notes = tuple(f"no interval: {reason}" for reason in reasons)
    return Table(("figure", "side", *HEADINGS), lines, fixed=2, footnotes=notes)


def _gate(comparison: Comparison, *, failed: bool) -> Lines:
    """The gates that fail, or those that do not."""
    lines = []
    for gate in comparison.gates:
        if bool(gate.failures) == failed:
            state = "FAILED: " + "; ".join(gate.failures) if failed else gate.skipped or "passed"
            lines.append(f"{gate.case}, {gate.letter}: fail if {gate.condition}: {state}")
    return Lines(lines, BAD if failed else GOOD)
