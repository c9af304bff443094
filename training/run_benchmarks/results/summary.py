"""What a run ended with: `summary.json` and `summary.md`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import Field

from run_benchmarks.results.reading import Record
from run_benchmarks.results.round_result import SCHEMA, RoundResult, write_json
from run_benchmarks.results.tables import explanations, preflight_text, remarks, results_tables
from run_benchmarks.stages.checks import Check
from utils.text_files import printable


@dataclass(frozen=True)
class Run(Record):
    """A whole run. `checks`: what the preflight saw, host by host.

    exit_code: None where the run did not come to its end. notes: what is missing of a run that was read back, or
    could not be read.
    """

    schema: int = field(default=SCHEMA, kw_only=True)
    name: Annotated[str, Field(alias="run")]
    uid: str
    started: str
    exit_code: int | None
    results: Annotated[tuple[RoundResult, ...], Field(alias="rounds")]
    checks: Annotated[Mapping[str, list[Check]], Field(alias="preflight")]
    notes: tuple[str, ...] = ()


def write_summary(folder: Path, run: Run) -> None:
    """Write both files into the run's folder."""
    write_json(folder / "summary.json", run.as_dict())
    partial = folder / ".summary.md.partial"
    partial.write_text(as_markdown(run), encoding="utf-8")
    partial.replace(folder / "summary.md")


def as_markdown(run: Run) -> str:
    """The summary to be read: the table, what its figures mean, and every failure with its evidence."""
    parts = [f"# {run.name}", f"Started {run.started}, exit code {run.exit_code}."]
    if run.results:
        parts += [
            "## Results",
            *(table.markdown() for table in results_tables(run.results)),
            "## What the figures mean",
            meanings(run.results),
        ]
        parts += [_round_notes(result) for result in run.results if result.failure or result.notes]
    parts += ["## Preflight", f"```\n{preflight_text(run.checks)}\n```"]
    parts += remarks(run.checks)
    return printable("\n\n".join(parts)) + "\n"


def meanings(results: tuple[RoundResult, ...]) -> str:
    """A line a figure and meaning: rounds of one case share theirs, and most cases share most."""
    cases: dict[str, list[str]] = {}
    for result in results:
        for line in explanations(result):
            names = cases.setdefault(line, [])
            if result.case not in names:
                names.append(result.case)
    everywhere = len({result.case for result in results})
    return "\n".join(
        f"- {line}" if len(names) == everywhere else f"- {line} ({', '.join(names)})"
        for line, names in cases.items()
    )


def _round_notes(result: RoundResult) -> str:
    lines = [f"## {result.case}, round {result.round}: {result.verdict.value}"]
    failure = result.failure
    if failure:
        lines.append(f"It ended {failure.headline}")
        if failure.evidence:
            lines.append(f"```\n{failure.evidence}\n```")
        if failure.remedy:
            lines.append(f"What to do: {failure.remedy}")
    lines += [f"- {note}" for note in result.notes]
    return "\n\n".join(lines)
