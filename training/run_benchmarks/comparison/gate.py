"""The gate of `compare`: a condition under which a comparison fails, in a small language that is read and never run.

    condition = all { "or" all };   all = part { "and" part };   part = test | shown
    test = FIGURE ("<" | "<=" | ">" | ">=") NUMBER ["%"];   shown = WORD "(" FIGURE ")"

A test looks at the ratio to the base, a `shown` at the verdict on it: WORD is one of WORDS.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from run_benchmarks.comparison.pairing import Unmatched
from run_benchmarks.comparison.ratios import BETTER, WORSE
from run_benchmarks.comparison.records import CaseComparison, Comparison, GateResult, Row
from utils.errors import FlagPerfError
from utils.figures import HIGHER, LOWER
from utils.numbers import digits_apart, shown
from utils.text_files import one_line

DIFFERENT = "different"
# The words of a condition, and the directions for which each holds.
WORDS: Mapping[str, tuple[str, ...]] = {
    "slower": (WORSE,),
    "worse": (WORSE,),
    "faster": (BETTER,),
    "better": (BETTER,),
    DIFFERENT: (WORSE, BETTER, LOWER, HIGHER),
}
COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
MOST_CHARACTERS = 1000
_NAME = r"([A-Za-z]\w{0,80})"
_TEST = re.compile(rf"{_NAME}\s*(<=|>=|<|>)\s*(\d{{1,9}}(?:\.\d{{1,9}})?)\s*(%?)", re.ASCII)
LEAST_PERCENT = 10  # what is less is a number of times
_SHOWN = re.compile(rf"({'|'.join(WORDS)})\s*\(\s*{_NAME}\s*\)", re.ASCII)
_EXAMPLE = 'write it like "p_train < 0.95", or "slower(p_train) and energy > 105% or worse(acc)"'


@dataclass(frozen=True)
class Part:
    """One condition. word: of WORDS, for one on the verdict; else `sign` and `limit` are for the ratio."""

    text: str
    figure: str
    word: str = ""
    sign: str = ""
    limit: float = 0.0

    def unclear(self, row: Row | None, letter: str) -> str:
        """Why nobody can tell of a side; empty where one can."""
        if row is None:
            return "no side has measured it"
        if self.word not in ("", DIFFERENT) and row.better is None:
            return f"neither higher nor lower is better: say {DIFFERENT}({self.figure})"
        ratio = row.against[letter]
        return ratio.reason if (ratio.p_value if self.word else ratio.value) is None else ""

    def holds(self, row: Row, letter: str) -> bool:
        """Whether what it says is so, where that is clear."""
        ratio = row.against[letter]
        if self.word:
            return ratio.direction in WORDS[self.word]
        return ratio.value is not None and COMPARISONS[self.sign](ratio.value, self.limit)

    def seen(self, row: Row, letter: str) -> str:
        """What there is to see of its figure."""
        ratio = row.against[letter]
        limit = 1.0 if self.word else self.limit
        value = ""
        if ratio.value is not None:
            value = f"the ratio is {shown(ratio.value, digits_apart([ratio.value, limit], 4))}"
        direction = f"shown to be {ratio.direction}" if ratio.direction else ""
        return f"{self.text}: {', '.join(filter(None, (value, direction)))}"


@dataclass(frozen=True)
class Gate:
    """A condition as it was given, and as it was read: it holds if all parts of any of its `alternatives` do."""

    text: str
    alternatives: Sequence[Sequence[Part]]

    @property
    def figures(self) -> list[str]:
        """The figures that it names."""
        return list(dict.fromkeys(part.figure for parts in self.alternatives for part in parts))

    def failures(self, rows: Mapping[str, Row], letter: str) -> list[str]:
        """Why it fails, a line a reason: what holds, or what nobody can tell; empty where it does not fail.

        Args:
            rows: by figure; one that no side has measured is not there.
            letter: of the side that is looked at.
        """
        parts = [part for alternative in self.alternatives for part in alternative]
        reasons = {part.text: part.unclear(rows.get(part.figure), letter) for part in parts}
        if any(reasons.values()):
            return [f"{text}: {reason}" for text, reason in reasons.items() if reason]
        failed = (each for each in self.alternatives if all(p.holds(rows[p.figure], letter) for p in each))
        return [part.seen(rows[part.figure], letter) for each in failed for part in each]


def parse_gate(text: str) -> Gate:
    """Read a condition.

    Raises:
        FlagPerfError: it is none.
    """
    if len(text) > MOST_CHARACTERS:
        raise FlagPerfError(f"has more than {MOST_CHARACTERS} characters", where="--fail-if", remedy=_EXAMPLE)
    alternatives = [re.split(r"\band\b", each) for each in re.split(r"\bor\b", text)]
    return Gate(text, [[_part(part.strip(), text) for part in parts] for parts in alternatives])


def _part(text: str, whole: str) -> Part:
    if match := _SHOWN.fullmatch(text):
        return Part(text, match[2], word=match[1])
    if match := _TEST.fullmatch(text):
        _check_unit(match, whole)
        return Part(text, match[1], sign=match[2], limit=float(match[3]) / (100 if match[4] else 1))
    message = f"{text!r} is no condition" if text else "a condition is missing"
    raise FlagPerfError(message, where=f"--fail-if {whole!r}", remedy=_EXAMPLE)


def _check_unit(match: re.Match[str], whole: str) -> None:
    """A ratio of 105, or one of 0.95 %, is a slip with the per cent sign, and such a gate would never fail."""
    name, sign, number, percent = match.groups()
    if (float(number) < LEAST_PERCENT) == bool(percent):
        meant = f"{name} {sign} {number}{'' if percent else '%'}"
        message = f"{match[0]!r}: a ratio to the base is never tested at {number}{percent}"
        raise FlagPerfError(message, where=f"--fail-if {whole!r}", remedy=f"did you mean {meant!r}?")


def gate_results(
    gates: Sequence[Gate], cases: Sequence[CaseComparison], unmatched: Sequence[Unmatched]
) -> list[GateResult]:
    """Every gate on every side of every case that was compared; and what no figure can tell, which fails with any gate.

    That is a case of the base that a side does not have, and a greater part of its rounds that are no success.
    """
    if not gates:
        return []
    compared = [case for case in cases if case.rows]
    return [
        *(result for gate in gates for result in _of_gate(gate, compared)),
        *(result for case in compared for result in _of_verdicts(case)),
        *(result for each in unmatched for result in _of_unmatched(each)),
    ]


def _of_verdicts(case: CaseComparison) -> Iterator[GateResult]:
    """A side that lacks more of its rounds than the base, of which the figures of those that succeeded tell nothing."""
    base, *others = case.sides
    for side in others:
        if side.missing_part > base.missing_part:
            seen = f"{side.misses}, {base.misses or f'all {base.used} of {base.letter} succeeded'}"
            yield GateResult("more of its rounds did not succeed", case.name, side.letter, [seen])


def _of_unmatched(each: Unmatched) -> Iterator[GateResult]:
    """A case that got lost; one that is new has nothing to be held against."""
    condition = "it is not on both sides"
    if each.is_of_base:
        yield from (GateResult(condition, each.case, letter, [str(each)]) for letter in each.absent)
    else:
        yield GateResult(condition, each.case, each.owner, skipped=str(each))


def _of_gate(gate: Gate, cases: Sequence[CaseComparison]) -> Iterator[GateResult]:
    """A case that lacks a figure of the gate is passed over if another one has all."""
    lacks = [[name for name in gate.figures if name not in _names(case)] for case in cases]
    for case, missing in zip(cases, lacks, strict=True):
        rows = {row.name: row for row in case.rows}
        reason = f"the case has no {', '.join(missing)}"
        for side in case.sides[1:]:
            if not missing:
                failures, skipped = gate.failures(rows, side.letter), ""
            elif all(lacks):
                failures, skipped = [f"{gate.text}: {reason}"], ""
            else:
                failures, skipped = [], reason
            yield GateResult(gate.text, case.name, side.letter, failures, skipped)


def _names(case: CaseComparison) -> set[str]:
    return {*(row.name for row in case.rows), *case.not_measured}


def junit(comparison: Comparison) -> bytes:
    """JUnit XML, which CI systems show: a test a gate, case and side; an error for a case that was refused."""
    from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

    suite = TestSuite("flagperf compare")
    for letter, selector in comparison.groups.items():
        suite.add_property(letter, one_line(selector))
    for gate in comparison.gates:
        name = f"{gate.letter} against {next(iter(comparison.groups))}: fail if {gate.condition}"
        test = TestCase(one_line(name), one_line(gate.case))
        if gate.failures:
            test.result = [Failure(one_line("; ".join(gate.failures)))]
        elif gate.skipped:
            test.result = [Skipped(one_line(gate.skipped))]
        suite.add_testcase(test)
    for case in comparison.cases:
        if case.is_refused:
            test = TestCase("comparable", one_line(case.name))
            test.result = [Error(one_line("; ".join(case.refusals)))]
            suite.add_testcase(test)
    xml = JUnitXml("flagperf compare")
    xml.add_testsuite(suite)
    content: bytes = xml.tostring()  # type: ignore[no-untyped-call]
    return content
