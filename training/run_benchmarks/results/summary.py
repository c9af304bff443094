"""What a run ended with: `summary.json` and `summary.md`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

from pydantic import Field

from run_benchmarks.exit_code import MEANINGS, ExitCode
from run_benchmarks.reading import Record, is_taken, parsed
from run_benchmarks.results.last_words import cause_in
from run_benchmarks.results.markdown import fenced, inline, listed
from run_benchmarks.results.meanings import WHERE, meanings
from run_benchmarks.results.round_result import SCHEMA, RoundResult, write_json
from run_benchmarks.results.shortfall import advice
from run_benchmarks.results.tables import preflight_text, remarks, results_tables
from run_benchmarks.stages.checks import Check
from run_benchmarks.unforeseen import log_traceback
from utils.events import PREFIX
from utils.records import Stage
from utils.text_files import shortened
from utils.writing import write_whole

MOST_NAMES = 5
LEFT_OUT = "summary.json has verdicts and figures alone: with what cases tell of themselves it could not be read back"
LONGEST_WORDS = 400  # characters of a line of evidence that are shown; result.json has all


@dataclass(frozen=True)
class Run(Record):
    """A whole run. `checks`: what the preflight saw, host by host.

    exit_code: None where the run did not come to its end. notes: what is missing of a run that was read back, or
    could not be read. planned: how many rounds it was to make; None where that is not known.
    """

    schema: int = field(default=SCHEMA, kw_only=True)
    name: Annotated[str, Field(alias="run")]
    uid: str
    started: str
    exit_code: int | None
    results: Annotated[tuple[RoundResult, ...], Field(alias="rounds")]
    checks: Annotated[Mapping[str, list[Check]], Field(alias="preflight")]
    notes: tuple[str, ...] = ()
    planned: int | None = None


def write_summary(folder: Path, run: Run) -> None:
    """Write both files into the run's folder; FlagPerfError for a run that nobody could read back.

    What each node is made of stands in the rounds' own result.json alone: of 256 nodes and a dozen rounds it would be
    more than a summary may hold.
    """
    content = replace(run, results=tuple(map(without_nodes, run.results))).as_dict()
    if not is_taken(json.dumps(content, indent=2)):
        content = replace(
            run, results=tuple(map(_brief, run.results)), notes=(*run.notes, LEFT_OUT)
        ).as_dict()
    parsed(Run, content, "summary.json")
    write_json(folder / "summary.json", content)
    write_whole(folder / "summary.md", _markdown_or_why(run))


def without_nodes(result: RoundResult) -> RoundResult:
    """The round as a summary has it."""
    origin, telemetry = result.provenance, result.telemetry
    return replace(
        result,
        clocks=(),
        provenance=replace(origin, hosts=(), software=(), monitors=()) if origin else None,
        telemetry=replace(telemetry, nodes=(), reconciliation=()) if telemetry else None,
    )


def as_summed_up(result: RoundResult, *, is_brief: bool) -> RoundResult:
    """The round as a summary has it; `is_brief`: as one that says so (LEFT_OUT)."""
    return _brief(result) if is_brief else without_nodes(result)


def _brief(result: RoundResult) -> RoundResult:
    """The round with its verdict and figures, and not what its case and its nodes tell of themselves."""
    rules = replace(result.rules, differs={}, earlier=(), hooks=None)
    return replace(without_nodes(result), rules=rules, facts={}, continued=None, provenance=None, notes=())


def _markdown_or_why(run: Run) -> str:
    """The summary to be read; where a fault of ours keeps it from being made, that, and where all of it stands."""
    try:
        return as_markdown(run)
    except Exception as error:
        log_traceback(Stage.JUDGE, error)
        return f"# {run.name}\n\nThis summary could not be made ({type(error).__name__}); summary.json has all.\n"


def as_markdown(run: Run) -> str:
    """The summary to be read: the tables, every failure with its evidence, what the figures mean, the preflight."""
    started = inline(f"Started {run.started}, exit code {outcome_text(run)}.")
    parts = [f"# {inline(run.name)}", started, listed(run.notes)]
    if run.results:
        parts += ["## Results", *(table.markdown() for table in results_tables(run.results))]
        parts += [_round_notes(result) for result in run.results if result.has_more]
        parts += ["## What the figures mean", inline(WHERE), listed(meanings(run.results))]
    if run.checks:  # of hosts that are known when they are granted there are none before
        parts += ["## Preflight", fenced(preflight_text(run.checks)), listed(remarks(run.checks))]
    return "\n\n".join(filter(None, parts)) + "\n"


def outcome_text(run: Run) -> str:
    """The exit code and why: the rounds that did not do what they are for, else what the code means."""
    others = [result for result in run.results if not result.verdict.is_success]
    names = [f"{each.case} round {each.round} {each.verdict.value}" for each in others[:MOST_NAMES]]
    names += [f"{len(others) - MOST_NAMES} more"] if len(others) > MOST_NAMES else []
    planned = max(run.planned or 0, len(run.results))
    not_run = planned - len(run.results)
    meaning = MEANINGS.get(run.exit_code, "") if run.exit_code is not None else ""
    parts = [meaning] if not others or run.exit_code == ExitCode.INTERRUPTED else []
    if others:
        parts.append(f"{len(others)} of {planned} rounds did not succeed: {', '.join(names)}")
    if not_run and run.results:
        parts.append(f"{not_run} of {planned} rounds {'was' if not_run == 1 else 'were'} not run")
    return ": ".join(filter(None, (str(run.exit_code), "; ".join(filter(None, parts)))))


def to_be_read(evidence: str) -> str:
    """What a log's last lines say to a reader: events are for programs, unless there is nothing else."""
    lines = evidence.splitlines()
    words = [line for line in lines if PREFIX not in line] or lines
    return "\n".join(shortened(line, LONGEST_WORDS) for line in words)


def _round_notes(result: RoundResult) -> str:
    parts = [f"## {inline(f'{result.case}, round {result.round}: {result.verdict.value}')}"]
    failure = result.failure
    if failure:
        cause = cause_in(failure)
        parts.append(inline(f"It ended {failure.headline}{cause and f': {cause}'}"))
        if failure.evidence:
            parts.append(inline(f"The end of `{failure.file}`:") if failure.file else "")
            parts.append(fenced(to_be_read(failure.evidence)))
        if failure.remedy:
            parts.append(inline(f"What to do: {failure.remedy}"))
    elif result.shortfall:
        parts.append(inline(f"It did not converge: {result.shortfall}"))
        parts.append(inline(f"What to do: {advice(result)}"))
    return "\n\n".join(filter(None, [*parts, listed(result.notes)]))
