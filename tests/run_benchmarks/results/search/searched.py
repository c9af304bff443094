"""Rounds that searched, by logs that were never written by a controller."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from run_benchmarks.plan.as_dict import plain
from run_benchmarks.plan.records import CasePlan
from run_benchmarks.results.judge import judge_logs
from run_benchmarks.results.planned import planned
from run_benchmarks.results.round_result import RoundResult, write_json
from run_benchmarks.results.summary import Run, write_summary
from run_benchmarks.stages.watch import Ended, Outcome
from tests.run_benchmarks.builders import conclude, make_case, observed, write_rank_log
from tests.search_log import BEGUN_MS, write_search
from utils.case_form import SEARCH_ROLES
from utils.events import Event, EventName
from utils.parameters import KIND, MeasurementSettings
from utils.records import Failure
from utils.search.events import SearchRecord

NPROC = 4  # as many as a worker of tests.search_log has ranks


def search_case(nodes: int = 2, **parameters: Any) -> CasePlan:
    """A case that searches, on so many nodes; each is a worker."""
    values: Mapping[str, Any] = {KIND: MeasurementSettings.kind, "search_seconds": 7200, **parameters}
    case = make_case([f"h{number + 1}" for number in range(nodes)], name=f"search:pytorch:X1:{nodes}:1:1")
    settings = replace(case.settings, nproc=NPROC)
    return replace(case, settings=settings, roles=SEARCH_ROLES, parameters=values)


def write_round(folder: Path, records: Iterable[SearchRecord], *, finished: bool = True) -> list[Path]:
    """The folders of two nodes; the first rank of each was started twice, and ended well."""
    folders = [folder / "h1_noderank0", folder / "h2_noderank1"]
    write_search(folders[0], records, finished)
    for rank, each in zip((0, NPROC), folders, strict=True):
        begin = Event(EventName.INIT_START, {"changed": [], "config": {}}, BEGUN_MS - 5000, rank)
        hooks = Event(EventName.HOOKS, {"hooks": {}}, BEGUN_MS - 4000, rank)
        end = Event(EventName.INIT_END, {"init_time": 2.0}, BEGUN_MS - 3000, rank)
        own = Event(EventName.FINISHED, {"e2e_time": 1.0}, BEGUN_MS + 9_000_000, rank)
        write_rank_log(each, [begin, hooks, end, begin, end, own], rank=rank)
    return folders


def judged_search(
    folder: Path,
    records: Iterable[SearchRecord],
    *,
    finished: bool = True,
    failure: Failure | None = None,
    **parameters: Any,
) -> RoundResult:
    """The result of such a round."""
    folders = write_round(folder, records, finished=finished)
    return judged_folders(folders, failure=failure, **parameters)


def judged_folders(
    folders: Sequence[Path], *, failure: Failure | None = None, **parameters: Any
) -> RoundResult:
    """The same, by folders that are there."""
    case = search_case(**parameters)
    seen = replace(observed(case, failure=failure), time_s=100_000.0)
    return judge_logs(planned(case), folders, seen)


def write_search_run(folder: Path, *searches: tuple[int, Iterable[SearchRecord]], **parameters: Any) -> Run:
    """A run, named as its folder, as `run.py` writes it; of a case for each search, which are on so many hosts."""
    name, uid = folder.name, f"{folder.name}-abcdef"
    folder.mkdir(parents=True, exist_ok=True)
    cases, results = [], []
    for nodes, records in searches:
        case = search_case(nodes, **parameters)
        round_folder = folder / case.settings.name / "round1"
        write_round(round_folder, records)
        outcome = Outcome({0: Ended(0, 1.0)}, False, {})
        seen = replace(observed(case, outcome=outcome), time_s=100_000.0)
        cases.append(case)
        results.append(conclude(case, seen, round_folder))
    write_json(folder / "plan.json", {"cases": [plain(case) for case in cases], "done": {}})
    run = Run(
        name, uid, "2026-01-02T03:04:05+00:00", int(any(each.failure for each in results)), tuple(results), {}
    )
    started = {"time": 1767323045.0, "event": "run_started", "run": name, "uid": uid}
    (folder / "journal.jsonl").write_text(f"{json.dumps(started)}\n")
    write_summary(folder, run)
    return run
