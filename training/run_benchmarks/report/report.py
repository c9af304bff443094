"""The report of a run: `report.html`, made from its result folder alone, and the same figures as CSV."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from run_benchmarks.report.page import page, rendered
from run_benchmarks.report.repeats import repeats_in
from run_benchmarks.report.rounds import round_view
from run_benchmarks.report.spread import spread_tables
from run_benchmarks.results.folder import RunFolder, open_folder
from run_benchmarks.results.load import lost_rounds
from run_benchmarks.results.meanings import WHERE, meanings
from run_benchmarks.results.summary import Run, outcome_text
from run_benchmarks.results.tables import remarks, results_tables
from run_benchmarks.unforeseen import log_traceback
from utils.records import Stage, Verdict
from utils.writing import write_whole

if TYPE_CHECKING:
    from markupsafe import Markup

REPORT = "report.html"
MOST_VALUES = 450_000  # in the charts of devices of all rounds: some 3 MB
MOST_ROUNDS = 40  # that are shown by themselves


def write_report(path: Path, folder: RunFolder, run: Run, hide: Callable[[str], str]) -> None:
    """Write the report of a run to the file `path`, whole or not at all.

    Args:
        folder: the run's, opened. hide: what takes the run's secrets out of a text that a log says.

    Raises:
        OSError: it cannot be written.
    """
    text = page(f"{run.name} - FlagPerf", report_body(folder, run, hide))
    write_whole(path, text)


def try_report(path: Path, run: Run, hide: Callable[[str], str]) -> Path | None:
    """The report in the folder `path` of a run that has just ended; None, and the log says why, where there is none.

    Nothing is raised: the summary is written, and the run's verdict stands.
    """
    try:
        write_report(path / REPORT, open_folder(path), run, hide)
    except Exception as error:
        log_traceback(Stage.JUDGE, error)
        return None
    return path / REPORT


def report_body(folder: RunFolder, run: Run, hide: Callable[[str], str]) -> Markup:
    """What stands in the report: the verdict, the tables, then round by round."""
    shown = run.results[:MOST_ROUNDS]
    views = [
        round_view(
            result,
            folder.folder_of(result),
            folder.cases.get(result.case),
            MOST_VALUES // len(shown),
            hide,
        )
        for result in shown
    ]
    content = {
        "run": run,
        "outcome": outcome_text(run),
        "succeeded": sum(result.verdict.is_success for result in run.results),
        "successes": [verdict.value for verdict in Verdict if verdict.is_success],
        "verdicts": [verdict.value for verdict in Verdict],
        "tables": results_tables(run.results) if run.results else [],
        "spreads": list(spread_tables(run.results, lost_rounds(folder, run.results))),
        "meanings": meanings(run.results),
        "where": WHERE,
        "rounds": list(zip(views, repeats_in(views), strict=True)),
        "left_out": len(run.results) - len(shown),
        "checks": {
            host: {each.name: each.status.value for each in checks} for host, checks in run.checks.items()
        },
        "check_names": list(dict.fromkeys(each.name for checks in run.checks.values() for each in checks)),
        "remarks": remarks(run.checks),
    }
    return rendered("report.html", **content)
