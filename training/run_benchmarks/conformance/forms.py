"""Reports of the kit, and what is proven of all vendors, as a terminal shows them and as Markdown."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

from rich.box import ASCII
from rich.console import Console
from rich.table import Table as Drawn
from rich.text import Text

from run_benchmarks.conformance.folder import vendor_in
from run_benchmarks.conformance.readme import measured_in
from run_benchmarks.conformance.records import (
    REPORT_FILE,
    CheckOutcome,
    CheckResult,
    ConformanceReport,
    read_report,
)
from run_benchmarks.results.markdown import inline, listed
from run_benchmarks.results.table import Table
from utils.errors import FlagPerfError
from utils.text_files import printable

WIDTH = 120  # where no terminal has another
NOTHING = "nothing yet"


def as_text(report: ConformanceReport, width: int | None) -> str:
    """The report as a table, what failed first; what one check came to stands together."""
    rows = [
        (outcome.value, f"{part}: {name}", "\n".join(map(_what, checks)))
        for (outcome, part, name), checks in groupby(
            _worst_first(report), lambda check: (check.outcome, check.part, check.name)
        )
    ]
    return f"{drawn(('outcome', 'check', 'what was seen, and what to do'), rows, width)}\n{_counted(report)}"


def as_markdown(report: ConformanceReport) -> str:
    """The report to attach to a pull request."""
    about = (
        f"harness: {report.harness or 'its commit is not known'}",
        f"date: {report.date}",
        f"hardware: {', '.join(report.hardware) or 'none: nothing here was seen on a chip'}",
        _counted(report),
    )
    rows = [(c.outcome.value, c.part, c.name, c.where, c.detail, c.remedy) for c in _worst_first(report)]
    table = Table(("outcome", "part", "check", "where", "what was seen", "what to do"), tuple(rows), fixed=3)
    return f"# Conformance of {inline(report.vendor)}\n\n{listed(about)}\n\n{table.markdown()}\n"


def _worst_first(report: ConformanceReport) -> list[CheckResult]:
    return [check for outcome in CheckOutcome for check in report.of(outcome)]


def _what(check: CheckResult) -> str:
    head = ": ".join(filter(None, (check.where, check.detail)))
    return f"{head}\n-> {check.remedy}" if check.remedy else head


def _counted(report: ConformanceReport) -> str:
    """How many checks came to what: one may have failed in several places."""
    names = {each: {(check.part, check.name) for check in report.of(each)} for each in CheckOutcome}
    return f"{report.vendor}: " + ", ".join(f"{len(of_it)} {each.value}" for each, of_it in names.items())


def vendors_text(folders: Iterable[Path], width: int | None) -> str:
    """Every vendor, its chips, and what was seen on hardware."""
    rows = [(folder.name, _chips(folder), "\n".join(_proven(folder)) or NOTHING) for folder in folders]
    return drawn(("vendor", "chips", "proven on hardware"), rows, width)


def _chips(folder: Path) -> str:
    vendor, problems = vendor_in(folder)
    return ", ".join(vendor.chips) if vendor else problems[0].message


def _proven(folder: Path) -> list[str]:
    """What a report in the folder says that names hardware, and where its results stand; nothing else is claimed."""
    lines = []
    try:
        report = read_report(folder / REPORT_FILE)
        if report and report.hardware and report.vendor == folder.name:
            lines.append(
                f"{', '.join(report.hardware)}: {_counted(report)} ({report.date}, {report.harness:.12})"
            )
    except FlagPerfError as error:
        lines.append(f"{folder.name}/{REPORT_FILE}: {error.message}")
    return lines + [f"results: {path.relative_to(folder.parent)}" for path in measured_in(folder)]


def drawn(headings: Sequence[str], rows: Iterable[Sequence[str]], width: int | None) -> str:
    """A table whose cells are broken into lines where they are too wide."""
    rows = list(rows)
    table = Drawn(*headings, box=ASCII, show_lines=any("\n" in cell for row in rows for cell in row))
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    text = io.StringIO()
    Console(file=text, width=width or WIDTH, color_system=None).print(table)
    return text.getvalue().rstrip("\n")
