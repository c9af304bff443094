"""What a run ended with: `summary.json` and `summary.md`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from run_benchmarks.results.round_result import SCHEMA, RoundResult, write_json
from run_benchmarks.results.tables import explanations, preflight_text, remarks, results_tables
from run_benchmarks.stages.checks import Check


@dataclass(frozen=True)
class RunSummary:
    """A whole run. `checks`: what the preflight saw, host by host."""

    run: str
    uid: str
    started: str
    exit_code: int
    results: tuple[RoundResult, ...]
    checks: Mapping[str, list[Check]]

    def as_dict(self) -> dict[str, Any]:
        """The summary as plain data."""
        return {
            "schema": SCHEMA,
            "run": self.run,
            "uid": self.uid,
            "started": self.started,
            "exit_code": self.exit_code,
            "rounds": [result.as_dict() for result in self.results],
            "preflight": {
                host: [asdict(check) for check in of_host] for host, of_host in self.checks.items()
            },
        }


def write_summary(folder: Path, summary: RunSummary) -> None:
    """Write both files into the run's folder."""
    write_json(folder / "summary.json", summary.as_dict())
    partial = folder / ".summary.md.partial"
    partial.write_text(as_markdown(summary), encoding="utf-8")
    partial.replace(folder / "summary.md")


def as_markdown(summary: RunSummary) -> str:
    """The summary to be read: the table, what its figures mean, and every failure with its evidence."""
    parts = [f"# {summary.run}", f"Started {summary.started}, exit code {summary.exit_code}."]
    if summary.results:
        parts += [
            "## Results",
            *(table.markdown() for table in results_tables(summary.results)),
            "## What the figures mean",
            _meanings(summary.results),
        ]
        parts += [_round_notes(result) for result in summary.results if result.failure or result.notes]
    parts += ["## Preflight", f"```\n{preflight_text(summary.checks)}\n```"]
    parts += remarks(summary.checks)
    return "\n\n".join(parts) + "\n"


def _meanings(results: tuple[RoundResult, ...]) -> str:
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
        where = f" on {failure.host}" if failure.host else ""
        lines.append(f"Stage {failure.stage.value}{where}, {failure.failure_class.value}: {failure.message}")
        if failure.evidence:
            lines.append(f"```\n{failure.evidence}\n```")
        if failure.remedy:
            lines.append(f"What to do: {failure.remedy}")
    lines += [f"- {note}" for note in result.notes]
    return "\n\n".join(lines)
