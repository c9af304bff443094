"""How far a round can be trusted, as its report shows it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from run_benchmarks.report.trust_tables import disturbance_rows, monitor_rows, straggler_rows
from run_benchmarks.results.disturbances import LIMITS, Disturbance, Kind
from run_benchmarks.results.provenance import Provenance
from run_benchmarks.results.stragglers import Straggler
from tests.run_benchmarks.builders import judge_folders, make_case, training_events, write_rank_log
from utils.inventory import MonitorCost

HOSTS = ["h0", "h1"]


def test_a_report_says_what_disturbed_who_was_late_and_what_the_monitors_took(tmp_path: Path) -> None:
    folders = [tmp_path / f"{host}_noderank{rank}" for rank, host in enumerate(HOSTS)]
    write_rank_log(folders[0], training_events())
    counts = {"cpu": {"sampled": 60, "failed": 1, "late": 2, "missed": 3}, "mem": {"sampled": 60}}
    heat = Disturbance(
        kind=Kind.THROTTLED,
        node=1,
        source="nvml",
        device="3",
        value=0.5,
        limit=0.01,
        what="held back in 50 %",
    )
    pace = Disturbance(kind=Kind.UNSTEADY, value=0.1, limit=0.05, what="throughput rose by 10 %")
    late = Straggler(node=1, rank=None, seconds=0.2, median_s=0.1, score=12.3, part="data", loss=0.25)
    result = replace(
        judge_folders(make_case(HOSTS), folders),
        disturbances=(heat, pace),
        stragglers=(late, replace(late, rank=9, part="forward")),
        provenance=Provenance(monitors=(None, MonitorCost(0.6, 60.0, 0.01, counts))),
    )
    assert disturbance_rows(result, HOSTS) == [
        ("throttled", "h1", "nvml 3", "held back in 50 %", LIMITS[Kind.THROTTLED].reason),
        ("unsteady", "", "", "throughput rose by 10 %", LIMITS[Kind.UNSTEADY].reason),
    ]
    assert straggler_rows(result, HOSTS) == [
        ("h1", "all", "200", "100", "12.3", "waiting for data", "25%"),
        ("h1", "9", "200", "100", "12.3", "forward pass", "25%"),
    ]
    assert monitor_rows(result, HOSTS) == [("h1", "0.600", "1", "120", "1", "2", "3")]


def test_of_an_undisturbed_round_it_says_nothing(tmp_path: Path) -> None:
    result = judge_folders(make_case(HOSTS), [])
    assert (disturbance_rows(result, HOSTS), straggler_rows(result, HOSTS), monitor_rows(result, HOSTS)) == (
        [],
        [],
        [],
    )
