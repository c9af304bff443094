"""The figures of real runs against those that an auditor computes from the raw files alone."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.audit.finished import finished, rates_of_operations
from tests.audit.power import READ
from tests.audit.recomputation import figures_of_run
from tests.audit.site import CONVERGES, ENDLESS, MEASURES, Site, make_site, shown
from tests.audit.telemetry import SCENARIOS, by_chance, report, write_scenarios

POWER = ("energy", "avg_power", "max_power", "energy_to_target", "samples_per_joule", *READ)
ESTIMATES = ("carbon_estimate", "cost_estimate")
OF_ONE_NODE = ("idle_power", "energy_above_idle")  # the second node of the copies has no rank's log


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, warm_python: str) -> Site:
    return make_site(tmp_path_factory.mktemp("site"), warm_python)


@pytest.fixture(scope="module")
def run(site: Site) -> Path:
    """A round that converged, one that measured, and one that was cut off."""
    return site.run_until_cut_off()


@pytest.fixture(scope="module")
def continued(site: Site, run: Path) -> Path:
    """The round that was cut off, gone on with and cut off again."""
    return site.run_until_cut_off("--continue-from", run.name)


def by_round(results: Iterable[dict[str, Any]]) -> dict[tuple[str, int], dict[str, Any]]:
    return {(result["case"], result["round"]): result for result in results}


def written(run: Path) -> dict[tuple[str, int], dict[str, Any]]:
    """Case and round -> result.json."""
    return by_round(json.loads(path.read_text()) for path in run.glob("*/round*/result.json"))


def values_of(result: dict[str, Any]) -> dict[str, float | None]:
    return {name: figure["value"] for name, figure in result["figures"].items()}


def assert_same_figures(run: Path, results: dict[tuple[str, int], dict[str, Any]]) -> None:
    """Every figure of every round, and no other."""
    own = figures_of_run(run)
    assert set(own) == set(results)
    for key, result in results.items():
        assert values_of(result) == agrees(own[key]), key


def agrees(own: Mapping[str, Any]) -> dict[str, Any]:
    """energy_above_idle is a difference, which may be nearly 0, and no more exact than what it is the difference of."""
    differences = {"energy_above_idle": 1e-12 * (own.get("energy") or 0.0)}
    return {
        name: pytest.approx(value, rel=1e-12, abs=differences.get(name, 0.0)) for name, value in own.items()
    }


def test_every_figure_of_every_round_follows_from_its_raw_files(run: Path) -> None:
    results = written(run)
    verdicts = {case: result["verdict"] for (case, _), result in results.items()}
    assert verdicts == {CONVERGES: "CONVERGED", MEASURES: "MEASURED", ENDLESS: "INTERRUPTED"}
    assert_same_figures(run, results)
    assert values_of(results[CONVERGES, 1])["MFU"]
    assert values_of(results[MEASURES, 1])["gemm_fp32_of_peak"]
    assert values_of(results[ENDLESS, 1])["acc"]


def test_they_follow_again_where_there_is_no_result(run: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(run, tmp_path / run.name)
    assert [again["figures"] for again in shown(copy, "--rescore")["rounds"]] == [{}, {}, {}]
    for path in copy.glob("*/round*/result.json"):
        path.unlink()
    assert_same_figures(copy, by_round(shown(copy)["rounds"]))


def test_a_round_that_was_continued_and_cut_off_tells_of_its_own_part(continued: Path) -> None:
    results = written(continued)
    assert results[ENDLESS, 1]["continued"]["step"] >= 40
    assert_same_figures(continued, results)


def test_what_training_reports_at_its_end_follows_from_its_events(run: Path) -> None:
    folder = run / CONVERGES / "round1"
    facts, own = finished(folder, json.loads((folder / "round.json").read_text()))
    assert {name: facts[name] for name in own} == agrees(own)


def test_rates_follow_from_those_of_all_windows(run: Path) -> None:
    result = written(run)[MEASURES, 1]
    own = rates_of_operations(result["facts"])
    assert {name: values_of(result)[name] for name in own} == pytest.approx(own, rel=1e-9, abs=1e-12)
    assert len(own) == 6


TODAYS = {"raw_train_time": 8.0, "no_eval_time": 7.0, "pure_compute_time": 6.0, "num_trained_samples": 640}
EARLIER = {"train_time": 8.0, "train_no_eval_time": 7.0, "pure_training_computing_time": 6.0, "final_f1": 0.5}
OWN = {"value": 3.0, "unit": "GOP/s", "window": "all", "definition": "a rate", "better": None}
REPORTS: list[dict[str, Any]] = [
    {**TODAYS, "num_trained_tokens": 7_000, "mem_allocated_bytes": 2**31, "mem_total_bytes": 3 * 2**30},
    {**TODAYS, "precision": "fp32", "model_flops_per_sample": 1e9, "metric": "f1", "final_f1": 0.25},
    {**TODAYS, "precision": "fp8", "model_flops_per_sample": 1e9, "final_loss": 1.5},
    {
        **TODAYS,
        "raw_train_time": True,
        "no_eval_time": "7",
        "pure_compute_time": math.nan,
        "e2e_time": math.inf,
    },
    {
        **TODAYS,
        "raw_train_time": 0,
        "no_eval_time": -1.0,
        "pure_compute_time": 0.0,
        "mem_reserved_bytes": None,
    },
    {**EARLIER, "num_trained_samples": 640, "final_loss": 1.0},
    {**EARLIER, "throughput(ips)_raw": 0, "throughput(sps)_raw": 70.0, "throuhgput(ips)_no_eval": 80.0},
    {**EARLIER, "training_images_per_second": 60.0, "throughput(ips)_pure_compute": 90.0, "final_acc": 0.7},
    {**EARLIER, "raw_train_time": None, "training_sequences_per_second": 65.0, "metric": "f1"},
    {**TODAYS, "figures": {"rate": {**OWN, "peak": "fp32"}, "other": {**OWN, "peak": "bf16"}, "9": OWN}},
    {
        **TODAYS,
        "figures": {
            "mem": OWN,
            "x_of_peak": OWN,
            "long": {**OWN, "unit": "u" * 41},
            "a": {**OWN, "value": 1},
        },
    },
    {**TODAYS, "figures": {"b": {**OWN, "better": "big"}, "c": {**OWN, "unit": "GB/s", "peak": "fp32"}}},
    {**TODAYS, "figures": {"d": {**OWN, "unit": "GB/s", "value": -2.0}}},
    {},
]


def test_whatever_a_case_reports(run: Path, tmp_path: Path) -> None:
    """Also what a script of an earlier version or of an author's own does."""
    copy = tmp_path / "copy"
    write_scenarios(run, CONVERGES, copy, [[[]] for _ in REPORTS])
    for number, facts in enumerate(REPORTS, 1):
        report(copy / CONVERGES / f"round{number}" / "localhost_noderank0" / "rank0.out.log", facts)
    assert_same_figures(copy, by_round(shown(copy)["rounds"]))


@pytest.mark.parametrize("nodes", [1, 2])
def test_power_and_energy_follow_from_telemetry(run: Path, tmp_path: Path, nodes: int) -> None:
    scenarios = SCENARIOS | {f"by chance, {seed}": by_chance(seed) for seed in range(80)}
    scenarios = {name: scenario for name, scenario in scenarios.items() if len(scenario) == nodes}
    write_scenarios(run, CONVERGES, tmp_path / "copy", list(scenarios.values()))
    own = figures_of_run(tmp_path / "copy")
    results = by_round(shown(tmp_path / "copy")["rounds"])
    assert len(results) == len(scenarios)
    theirs = {name: values_of(results[CONVERGES, number]) for number, name in enumerate(scenarios, 1)}
    wrong = {
        name for number, name in enumerate(scenarios, 1) if theirs[name] != agrees(own[CONVERGES, number])
    }
    assert not wrong
    names = (*POWER, *ESTIMATES, *(OF_ONE_NODE if nodes == 1 else ()))
    assert all(len({figures[name] for figures in theirs.values()}) > 1 for name in names)  # not all are null
