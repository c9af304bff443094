"""A comparison to be read: headings, sentences and tables, in order; `forms` makes text and Markdown of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from run_benchmarks.comparison.pareto import Picture, pictures
from run_benchmarks.comparison.ratios import would_do
from run_benchmarks.comparison.records import Against, CaseComparison, Cell, Comparison, Row, Side
from run_benchmarks.comparison.statistics import CONFIDENCE
from run_benchmarks.results.table import Table
from run_benchmarks.results.tables import NOT_MEASURED
from utils.numbers import shown

MOST_DIFFERENCES = 40  # of a part that are shown; the JSON has all
NOT_SHOWN = "no difference shown"
HELD_BACK = "the interval by itself is without 1, but among so many figures that shows nothing (Holm)"
HOW = (
    f"Ratios are of geometric means; intervals and verdicts are of t tests on logarithms (the wider of Welch's and "
    f"Student's), {CONFIDENCE:.0%}; figures that nobody asked for are judged together (Holm). docs/comparing.md of "
    f"FlagPerf says why."
)
GOOD, BAD, PLAIN = "good", "bad", ""


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
    """A table of figures of a side against the base, a row an entry of `against`."""

    table: Table
    against: Sequence[Against]


@dataclass(frozen=True)
class Details:
    """A table that not everybody reads."""

    title: str
    table: Table


Tabular = Table | Ratios | Details | Picture
Block = Heading | Lines | Tabular
KINDS = {"better": GOOD, "worse": BAD}


def blocks(comparison: Comparison, *, is_brief: bool) -> Iterator[Block]:
    """The comparison in the order in which it is read.

    Args:
        is_brief: statistics over rounds of those figures alone that were asked for.
    """
    yield Heading(f"Comparison with {next(iter(comparison.groups.values()))}", 1)
    yield Table(("", "rounds of"), tuple(comparison.groups.items()), fixed=1)
    yield from _lines(comparison.unmatched)
    for case in comparison.cases:
        yield Heading(case.name)
        yield from _verdicts(case, comparison.difference)
        yield _sides(case)
        yield from _lines(_about_sides(case))
        yield from _differences(case)
        for side in case.sides[1:] if case.rows else ():
            yield Heading(f"{side.letter} against {case.sides[0].letter}", 3)
            yield _figures(case, side)
        if case.not_measured:
            yield Lines([f"Not measured on any side: {', '.join(case.not_measured)}"])
        rows = [row for row in case.rows if row.is_asked or not is_brief]
        if rows:
            yield Details("Statistics over rounds", _statistics(rows, case.sides))
        yield from pictures(case)
    if comparison.gates:
        yield Heading("Gate")
        yield from (_gate(comparison, failed=failed) for failed in (True, False))
    yield Lines([HOW])
    if comparison.notes:
        yield Heading("What is missing of the runs")
        yield Lines(comparison.notes)


def verdict_text(row: Row, against: Against) -> str:
    """faster, slower, ... or that no difference is shown, and why none can be."""
    if not against.direction:
        missing = against.ratio.p_value is None and against.ratio.value is not None
        return (
            f"{NOT_SHOWN}: too few rounds" if missing else NOT_SHOWN if against.ratio.value else NOT_MEASURED
        )
    is_speed = row.unit == "s" or row.unit.endswith("/s")
    return (
        {"better": "faster", "worse": "slower"}.get(against.direction, "") if is_speed else against.direction
    )


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
        for letter, against in row.against.items():
            answer = f"{letter} against {base}: {_answer(row, against, difference)}"
            yield Lines([answer], KINDS.get(against.direction, PLAIN))


def _answer(row: Row, against: Against, difference: float) -> str:
    ratio = against.ratio
    if ratio.value is None:
        return f"{row.name}: {ratio.reason}"
    interval = f" [{shown(ratio.interval[0], 4)}, {shown(ratio.interval[1], 4)}]" if ratio.interval else ""
    text = f"{row.name} {shown(ratio.value, 4)} times{interval}"
    if against.direction:
        return f"{text}: {verdict_text(row, against)}"
    reasons = [ratio.reason, HELD_BACK if against.held_back else "", would_do(ratio, difference)]
    return f"{text}: {NOT_SHOWN} ({'; '.join(filter(None, reasons))})"


def _sides(case: CaseComparison) -> Table:
    rows = tuple(
        (side.letter, side.case, str(side.used), _joined(side.chips), _joined(side.nodes), _olympic(side))
        for side in case.sides
    )
    return Table(("", "case", "rounds", "chips", "nodes", "MLPerf mean s"), rows, fixed=2)


def _joined(values: Sequence[int | None]) -> str:
    return " | ".join("not known" if value is None else str(value) for value in values)


def _olympic(side: Side) -> str:
    return (
        NOT_MEASURED if side.olympic is None or side.olympic.value is None else shown(side.olympic.value, 5)
    )


def _about_sides(case: CaseComparison) -> list[str]:
    left_out = [f"left out, for it did not succeed: {each}" for side in case.sides for each in side.left_out]
    olympic = [
        f"no MLPerf mean of {side.letter} (time to target without the fastest and the slowest): {side.olympic.reason}"
        for side in case.sides
        if side.olympic and side.olympic.reason
    ]
    return [*left_out, *olympic, *case.unknown]


def _differences(case: CaseComparison) -> Iterator[Block]:
    """A table a part, and what is left of one that is long."""
    yield Heading("What differs", 3)
    letters = tuple(side.letter for side in case.sides)
    rows: list[tuple[str, ...]] = []
    counts: dict[str, int] = {}
    for each in case.differences:
        counts[each.part] = counts.get(each.part, 0) + 1
        if counts[each.part] <= MOST_DIFFERENCES:
            rows.append((each.part, each.name, *(each.values[letter] for letter in letters)))
    if rows:
        yield Table(("part", "what", *letters), tuple(rows), fixed=2, is_grouped=True)
    more = [
        f"{count - MOST_DIFFERENCES} more in {part}"
        for part, count in counts.items()
        if count > MOST_DIFFERENCES
    ]
    yield from _lines(more if rows else ["nothing that is known"])


def _figures(case: CaseComparison, side: Side) -> Ratios:
    """Every figure of a side against the base."""
    base, letter = case.sides[0].letter, side.letter
    notes: dict[str, list[str]] = {}
    rows = []
    for row in case.rows:
        against = row.against[letter]
        cells = [row.cells[base], row.cells[letter]]
        reasons = [against.ratio.reason, HELD_BACK if against.held_back else "", *_caveats(cells)]
        for reason in filter(None, dict.fromkeys(reasons)):
            notes.setdefault(reason, []).append(row.name)
        about = (row.name, row.unit, row.better or NOT_MEASURED, *map(_mean, cells))
        rows.append((*about, *_ratio(against), verdict_text(row, against) + ("*" if any(reasons) else "")))
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
    footnotes = tuple(f"* {', '.join(names)}: {reason}" for reason, names in notes.items())
    table = Table(headings, tuple(rows), fixed=1, footnotes=footnotes)
    return Ratios(table, [row.against[letter] for row in case.rows])


def _caveats(cells: Sequence[Cell]) -> list[str]:
    return [caveat for cell in cells for caveat in cell.caveats]


def _ratio(against: Against) -> tuple[str, str]:
    ratio = against.ratio
    value = NOT_MEASURED if ratio.value is None else shown(ratio.value, 4)
    interval = " .. ".join(shown(end, 4) for end in ratio.interval) if ratio.interval else NOT_MEASURED
    return value, interval


def _mean(cell: Cell) -> str:
    return shown(cell.summary.mean, 4) if cell.summary else NOT_MEASURED


def _statistics(rows: Sequence[Row], sides: Sequence[Side]) -> Table:
    cells = [(row, side.letter, row.cells[side.letter]) for row in rows for side in sides]
    lines, notes = [], dict[str, None]()
    for row, letter, cell in cells:
        each = cell.summary
        if each is None:
            continue
        interval = " .. ".join(shown(end, 4) for end in each.interval) if each.interval else NOT_MEASURED
        sd = NOT_MEASURED if each.sd is None else shown(each.sd)
        cv = NOT_MEASURED if each.cv is None else f"{100 * each.cv:.2g} %"
        lines.append(
            (row.name, letter, str(each.count), shown(each.median, 4), shown(each.mean, 4), sd, cv, interval)
        )
        if each.no_interval:
            notes[f"no interval: {each.no_interval}"] = None
    headings = (
        "figure",
        "side",
        "rounds",
        "median",
        "mean",
        "sd",
        "cv",
        f"{CONFIDENCE:.0%} of the mean (BCa)",
    )
    return Table(headings, tuple(lines), fixed=2, footnotes=tuple(notes))


def _gate(comparison: Comparison, *, failed: bool) -> Lines:
    """The gates that fail, or those that do not."""
    lines = []
    for gate in comparison.gates:
        if bool(gate.failures) == failed:
            state = "FAILED: " + "; ".join(gate.failures) if failed else gate.skipped or "passed"
            lines.append(f"{gate.case}, {gate.letter}: fail if {gate.condition}: {state}")
    return Lines(lines, BAD if failed else GOOD)
