"""A run as text for a terminal: its tables, what went wrong, and what its figures mean."""

from __future__ import annotations

from collections.abc import Iterator

from run_benchmarks.results.last_words import cause_in
from run_benchmarks.results.meanings import WHERE, meanings
from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.results.shortfall import advice
from run_benchmarks.results.summary import Run, to_be_read
from run_benchmarks.results.tables import remarks, results_text
from utils.text_files import filled, one_line


def run_text(run: Run, width: int | None) -> str:
    """The whole of it, in lines of `width` characters where that can be (None: no limit)."""
    parts = [_head(run, width)]
    if run.results:
        parts.append(results_text(run.results, width))
    parts += ["\n".join(_round(result, width)) for result in run.results if result.has_more]
    if run.results:
        lines = (_wrapped(f"- {line}", width) for line in meanings(run.results))
        parts.append("\n".join(["What the figures mean:", *lines, _wrapped(WHERE, width)]))
    to_do = remarks(run.checks)
    if to_do:
        parts.append("\n".join(["Preflight:", *(_wrapped(f"- {line}", width) for line in to_do)]))
    return "\n\n".join(parts)


def _head(run: Run, width: int | None) -> str:
    ended = "has no exit code" if run.exit_code is None else f"exit code {run.exit_code}"
    lines = [f"{run.name}: started {run.started or 'at an unknown time'}, {ended}"]
    return "\n".join(_wrapped(line, width) for line in (*lines, *(f"- {note}" for note in run.notes)))


def _round(result: RoundResult, width: int | None) -> Iterator[str]:
    yield _wrapped(f"{result.case}, round {result.round}: {result.verdict.value}", width)
    failure = result.failure
    if failure:
        cause = cause_in(failure)
        yield _wrapped(f"  {failure.headline}{cause and f': {cause}'}", width)
        yield from (f"    {line}" for line in to_be_read(failure.evidence).splitlines())
        if failure.remedy:
            yield _wrapped(f"  -> {failure.remedy}", width)
    elif result.shortfall:
        yield _wrapped(f"  {result.shortfall}", width)
        yield _wrapped(f"  -> {advice(result)}", width)
    yield from (_wrapped(f"- {note}", width) for note in result.notes)


def _wrapped(text: str, width: int | None) -> str:
    line = one_line(text)
    if width is None:
        return line
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return filled(line, width, indent)
