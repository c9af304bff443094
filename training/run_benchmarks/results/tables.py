"""The tables that a user reads: preflight, and the figures of each round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.stages.checks import Check, Status
from utils.figures import Figure

# Heading (with unit) -> figure and format.
COLUMNS: Mapping[str, tuple[str, str]] = {
    "e2e s": ("e2e_time", "{:.1f}"),
    "round s": ("round_time", "{:.1f}"),
    "to target s": ("time_to_target", "{:.1f}"),
    "p_whole /s": ("p_whole", "{:.1f}"),
    "p_train /s": ("p_train", "{:.1f}"),
    "p_core /s": ("p_core", "{:.1f}"),
    "MFU": ("MFU", "{:.3f}"),
    "acc": ("acc", "{:.4f}"),
    "mem GiB": ("mem", "{:.1f}"),
    "energy J": ("energy", "{:.0f}"),
}
HEADINGS = ("case", "round", "verdict", *COLUMNS, "rules")
NOT_MEASURED = "-"


def figures_row(result: RoundResult) -> tuple[str, ...]:
    """A round's row under HEADINGS."""
    shown = [_shown(result.figures.get(name), form) for name, form in COLUMNS.values()]
    number = str(result.round)
    if result.continued is not None:
        number += f" (from step {result.continued.get('step')})"
    return (result.case, number, result.verdict.value, *shown, result.rules.stamp or NOT_MEASURED)


def explanations(result: RoundResult) -> list[str]:
    """One line a figure of the table: its unit, window and source, or why it is not there."""
    lines = []
    for heading, (name, _) in COLUMNS.items():
        figure = result.figures.get(name)
        if figure is not None:
            lines.append(f"`{heading}` ({name}, {figure.unit}; {figure.window}): {figure.source}")
    return [*lines, f"`rules`: {result.rules.explanation()}"]


def preflight_text(checks: Mapping[str, Sequence[Check]]) -> str:
    """The preflight as plain text: a row a host, a mark a check."""
    names = list(dict.fromkeys(check.name for found in checks.values() for check in found))
    rows = [("host", *names)]
    for host, found in checks.items():
        marks = {check.name: _mark(check) for check in found}
        rows.append((host, *(marks.get(name, NOT_MEASURED) for name in names)))
    return aligned(rows)


def remarks(checks: Mapping[str, Sequence[Check]]) -> list[str]:
    """A line a check that was not passed: what it found, and what to do."""
    return [
        f"- {host}: {check.name}: {' '.join(check.detail.split())} -> {check.remedy}"
        for host, found in checks.items()
        for check in found
        if check.status is not Status.OK
    ]


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Rows as text, columns aligned."""
    if not rows:
        return ""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _mark(check: Check) -> str:
    return {Status.OK: "ok", Status.WARNING: "WARN", Status.ERROR: "FAILED"}[check.status]


def _shown(figure: Figure | None, form: str) -> str:
    return NOT_MEASURED if figure is None or figure.value is None else form.format(figure.value)
