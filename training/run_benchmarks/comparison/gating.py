"""Gates put to a comparison, and what came of them as JUnit XML, which CI systems show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from run_benchmarks.comparison.gate import Gate, Judged
from run_benchmarks.comparison.records import CaseComparison, Comparison, GateResult
from utils.text_files import one_line


def gate_results(gates: Sequence[Gate], cases: Sequence[CaseComparison]) -> list[GateResult]:
    """Every gate on every side of every case that was compared."""
    return [result for gate in gates for result in _of_gate(gate, [each for each in cases if each.rows])]


def junit(comparison: Comparison) -> bytes:
    """JUnit XML: a test a gate, case and side; an error for a case that was refused."""
    from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

    suite = TestSuite("flagperf compare")
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


def _of_gate(gate: Gate, cases: Sequence[CaseComparison]) -> Iterator[GateResult]:
    has_all = [case for case in cases if set(gate.figures) <= _names(case)]
    for case in cases:
        missing = [name for name in gate.figures if name not in _names(case)]
        reason = f"the case has no {', '.join(missing)}"
        for letter in [side.letter for side in case.sides][1:]:
            if not missing:
                yield GateResult(
                    gate.text, case.name, letter, gate.failures(_judged(case, letter, gate.figures))
                )
            elif has_all:
                yield GateResult(gate.text, case.name, letter, skipped=reason)
            else:
                yield GateResult(gate.text, case.name, letter, [f"{gate.text}: {reason}"])


def _names(case: CaseComparison) -> set[str]:
    return {*(row.name for row in case.rows), *case.not_measured}


def _judged(case: CaseComparison, letter: str, figures: Sequence[str]) -> Mapping[str, Judged]:
    rows = {row.name: row for row in case.rows}
    nothing = Judged(None, "", "no side has measured it")
    return {name: rows[name].judged(letter) if name in rows else nothing for name in figures}
