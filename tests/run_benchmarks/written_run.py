"""A run's folder as the controller writes it, without a run; and the folders of an earlier version."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from run_benchmarks.plan.as_dict import plain
from run_benchmarks.results.round_result import write_json
from run_benchmarks.results.summary import Run, write_summary
from run_benchmarks.stages.checks import Check, Status
from run_benchmarks.stages.watch import Ended, Lost, Outcome
from tests.run_benchmarks.builders import conclude, make_case, observed, training_events, write_rank_log

SCHEMA1 = Path(__file__).parent / "results" / "schema1"
CASE = make_case()
NAME = CASE.settings.name
FIGURE = {"value": 2.5, "unit": "GB/s", "window": "all", "better": None, "definition": "a rate"}
CHECKS = {"h1": [Check("clock", Status.WARNING, "+0.7 s", "start NTP")], "h2": []}
UID = "run20260102030405-abcdef"


def write_run(folder: Path) -> Run:
    """A run of three rounds as the controller writes it: one converged, one failed, one lost a host."""
    endings = (
        Outcome({0: Ended(0, 1.5), 1: Ended(0, 2.0)}, False, {}),
        Outcome({1: Ended(3, 2.0)}, False, {}),
        Outcome({0: Lost("Connection refused", False, 7.0)}, True, {1: "no answer"}),
    )
    case = replace(CASE, settings=replace(CASE.settings, repeat=3))
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "plan.json", {"cases": [plain(case)], "done": {}})
    lines = [{"time": 1767323045.0, "event": "run_started", "run": "run20260102030405", "uid": UID}]
    results = []
    for number, outcome in enumerate(endings, 1):
        round_folder = folder / NAME / f"round{number}"
        write_rank_log(round_folder / "h1_noderank0", training_events(figures={"rate": FIGURE}))
        write_rank_log(round_folder / "h2_noderank1", [], rank=1, tail="ValueError: bad \x1b[31mshard\x1b[0m")
        seen = replace(observed(case, outcome=outcome), round=number, notes=("a note",), lost=("h2",))
        lines += [{"event": name, "case": NAME, "round": number} for name in ("round_started", "round_ended")]
        results.append(conclude(case, seen, round_folder))
    run = Run("run20260102030405", UID, "2026-01-02T03:04:05+00:00", 1, tuple(results), CHECKS)
    (folder / "journal.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    write_summary(folder, run)
    return run
