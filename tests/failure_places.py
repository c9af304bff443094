"""Where each failed test came to its end, in a line near the end of the output: often that is all one has of it."""

from __future__ import annotations

import pytest

MOST = 20


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A line a failure: the places from the test inwards, of one that waited too long those where it waited."""
    stats = terminalreporter.stats
    failures = [*stats.get("failed", ()), *stats.get("error", ())]
    if failures:
        terminalreporter.section("where they failed")
        terminalreporter.write("".join(f"{each.nodeid}: {places(each)}\n" for each in failures[:MOST]))


def places(report: pytest.TestReport) -> str:
    """The places of its error, outermost first."""
    entries = getattr(getattr(report.longrepr, "reprtraceback", None), "reprentries", ())
    at = [entry.reprfileloc for entry in entries if getattr(entry, "reprfileloc", None)]
    return " > ".join(f"{each.path}:{each.lineno}" for each in at) or "nothing is known of it"
