"""A run's searches as users of AIPerf know them: `results.txt`, `Report_<time>_<Succeed|Failed>.html`, the logs.

The form is that of AIPerf's `scripts/reports` (github.com/thu-pacman/AIPerf): hours, per cent, and 10^9 operations a
second, which it calls GFLOPS; its GFLOPS are the score, its Score is the regulated one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from run_benchmarks.exports.archive import export_archive
from run_benchmarks.exports.chosen import Round, file_name, rounds_in
from run_benchmarks.exports.destination import new_folder
from run_benchmarks.plan.secrets import Secrets
from run_benchmarks.report.page import page
from run_benchmarks.report.report import report_body
from run_benchmarks.report.search.section import outcome_of
from run_benchmarks.results.load import run_in
from run_benchmarks.results.search.log import SearchLog, read_search
from run_benchmarks.results.search.record import Point
from run_benchmarks.results.table import NOT_MEASURED
from utils.errors import FlagPerfError
from utils.search.account import Trial
from utils.search.events import CONTROLLER_LOG

RESULTS, TRIALS, LOGS = "results.txt", "trials.json", "logs.tar.gz"
GIGA, HOUR_S = 1e9, 3600.0
_DOUBLE, _SINGLE = "=" * 70, "-" * 70
_ROW = "{:^10}\t{:^10}\t{:^10}\t{:^10}"


def export_aiperf(run: Path, output: Path, secrets: Secrets, training_dir: Path) -> list[str]:
    """Write a folder for each search, and the logs of all in one archive; what is to be known, line by line.

    Args:
        secrets, training_dir: as of `export_archive`, which makes the archive.

    Raises:
        FlagPerfError: the run has no round that searched, or `output` is there already.
    """
    rounds = rounds_in(run, lambda: secrets)
    searches = [each for each in rounds if each.result.search and each.node_folders()]
    if not searches:
        raise FlagPerfError("no round of it is a search that began", where=str(run))
    others = [
        f"{each.name} is left out: it is no search that began" for each in rounds if each not in searches
    ]
    with new_folder(output) as folder:
        for each in searches:
            own = folder / f"{file_name(each.result.case)}_round{each.result.round}"
            own.mkdir()
            _write_round(own, each, secrets)
        notes = export_archive(run, folder / LOGS, secrets, training_dir)
    return [*others, *(f"{LOGS}: {note}" for note in notes)]


def _write_round(folder: Path, each: Round, secrets: Secrets) -> None:
    log = read_search(each.node_folders()[0] / CONTROLLER_LOG)
    succeeded, why = outcome_of(each.result)
    _write(folder / RESULTS, secrets.hide(results_text(each, "" if succeeded else why)))
    _write(folder / TRIALS, secrets.hide(json.dumps(trials_of(log), indent=2)) + "\n")
    ended_ms = next((told.time_ms for told in reversed(log.told)), 0)
    stamp = f"{each.local_time(ended_ms):%Y%m%d%H%M%S}"
    name = f"Report_{stamp}_{'Succeed' if succeeded else 'Failed'}.html"
    own = replace(run_in(each.folder, lambda: secrets), results=(each.result,))
    _write(folder / name, page(f"{each.name} - FlagPerf", report_body(each.folder, own, secrets.hide)))


def results_text(each: Round, why: str = "") -> str:
    """`results.txt`. why: why it failed, or empty."""
    search = each.result.search
    points = search.series if search else ()
    columns = columns_of(points)
    final = [columns[name][-1] if points else None for name in ("GFLOPS", "Score")]
    rows = zip(columns["real_time"], columns["Error"], columns["GFLOPS"], columns["Score"], strict=True)
    lines = [
        _DOUBLE,
        *([f"!!! Test failed due to {why.replace(':', ',')} !!!"] if why else []),
        f"Final Score : {_final(final[0])}",
        f"Final Regulated Score : {_final(final[1])}",
        _DOUBLE,
        _ROW.format("Time(H)", "Error(%)", "Score", "Regulated Score"),
        _SINGLE,
        *(_ROW.format(*map(_shown, row)) for row in rows),
        _DOUBLE,
        str(columns),
        _SINGLE,
    ]
    return "\n".join([*lines, ""])


def columns_of(points: Sequence[Point]) -> dict[str, Sequence[float | None]]:
    """The course of a search in AIPerf's words; without an error there is no regulated score."""
    errors = [100 * (1 - point.accuracy) for point in points]
    scores = [point.score / GIGA for point in points]
    regulated = [
        score * abs(math.log(error / 100)) if error > 0 else None
        for score, error in zip(scores, errors, strict=True)
    ]
    hours = [point.seconds / HOUR_S for point in points]
    return {"real_time": hours, "GFLOPS": scores, "Error": errors, "Score": regulated}


def trials_of(log: SearchLog) -> list[Mapping[str, Any]]:
    """Every trial with its epochs, as plain data."""
    return list(map(_trial, log.account.trials.values()))


def _trial(trial: Trial) -> Mapping[str, Any]:
    about = {name: value for name, value in vars(trial.start).items() if name != "time_s"}
    epochs = [
        {name: value for name, value in vars(each).items() if name not in about} for each in trial.epochs
    ]
    return {
        **about,
        "started_s": trial.start.time_s,
        "state": trial.state,
        "epochs_done": list(_timed(epochs)),
    }


def _timed(epochs: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for each in epochs:
        yield {"ended_s": each.pop("time_s"), **each}


def _shown(number: float | None) -> str:
    if number is None:
        return NOT_MEASURED
    return f"{number:.4g}" if abs(number) < 1e6 else f"{number:.0f}"


def _final(score: float | None) -> str:
    return NOT_MEASURED if score is None else f"{score} GFLOPS"


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
