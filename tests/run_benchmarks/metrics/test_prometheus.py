"""Debian's Prometheus scrapes a run from its begin to its end; dashboard and alerts are asked of what it has seen."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks.metrics.definitions import DEFINITIONS
from run_benchmarks.plan.monitors import METERS
from tests.run_benchmarks.metrics.watched import (
    OBSERVABILITY,
    OPERATIONS,
    TRAINING,
    Watched,
    device_metrics,
    program,
    waited_for,
    watched_run,
)

DASHBOARD = json.loads((OBSERVABILITY / "dashboard.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
ALERTS = re.findall(r"- alert: (\w+)", (OBSERVABILITY / "alerts.yml").read_text())
QUERIES = [(panel["title"], target["expr"]) for panel in PANELS for target in panel["targets"]]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """A run that was watched: a measurement, a training whose controller is killed and taken up, and one that fails."""
    with (
        pytest.MonkeyPatch.context() as monkeypatch,
        watched_run(tmp_path_factory.mktemp("watched"), monkeypatch) as watched,
    ):
        watched.start()
        watched.until("flagperf_operation_rate == 1e12")
        watched.let("measured")
        watched.until('flagperf_rounds_total{verdict="MEASURED"} == 1')
        watched.until(f'flagperf_steps_total{{case="{TRAINING}", round="1"}} > 5')
        watched.until("flagperf_node_power_watts == 100")
        watched.scrape()
        watched.kill()
        watched.until('up{job="flagperf"} == 0')
        watched.start("resume")
        watched.until(f'flagperf_steps_total{{case="{TRAINING}", round="1"}} > 20')
        watched.until("rate(flagperf_samples_total[1m]) > 0")
        watched.until("rate(process_cpu_seconds_total[1m]) > 0")
        watched.let("go")
        watched.until('flagperf_rounds_total{verdict="CONVERGED"} == 1')
        watched.until('flagperf_steps_total{round="2"} > 5')
        watched.let("go again")
        assert watched.end() == 1
        watched.until('up{job="flagperf"} == 0')
        yield watched


def ever(seen: Watched, expression: str) -> list[dict[str, Any]]:
    """What an expression gave at any second since the run began."""
    window = {"start": f"{seen.begun}", "end": f"{time.time()}", "step": "1"}
    series: list[dict[str, Any]] = seen.ask("query_range", query=expression, **window)["result"]
    return series


def test_the_end_of_a_run_is_seen_before_its_port_is_closed(seen: Watched) -> None:
    (failed,) = ever(seen, f'flagperf_rounds_total{{case="{TRAINING}", verdict="FAILED"}} == 1')
    assert failed["metric"]["run"] == seen.run.result.name
    assert not seen.query("flagperf_rounds_total"), "the port is closed"


def test_what_was_done_before_the_controller_died_is_counted_after_it(seen: Watched) -> None:
    (measured,) = ever(seen, 'flagperf_rounds_total{verdict="MEASURED"} == 1')
    assert measured["metric"]["case"] == OPERATIONS
    after = ever(
        seen,
        'flagperf_rounds_total{verdict="FAILED"} == 1 and on (run) (flagperf_rounds_total{verdict="MEASURED"} == 1)',
    )
    assert after


def test_rounds_follow_each_other_and_do_not_pile_up(seen: Watched) -> None:
    rounds = ever(
        seen, "count by (run) (count by (run, case, round) (flagperf_round_start_timestamp_seconds))"
    )
    (of_run,) = rounds
    assert {value for _, value in of_run["values"]} == {"1"}


def test_everything_that_is_defined_was_scraped(seen: Watched) -> None:
    there = {name for name in seen.ask("label/__name__/values") if name.startswith("flagperf_")}
    missing = {each.sample for each in DEFINITIONS} - there
    assert missing == {"flagperf_samples_limit"}, "no toy has one"
    assert device_metrics() <= there


@pytest.mark.parametrize(
    ("title", "expression"), QUERIES, ids=[f"{title}: {expr}" for title, expr in QUERIES]
)
def test_a_query_of_the_dashboard_returns_data(seen: Watched, title: str, expression: str) -> None:
    assert ever(seen, expression.replace("$run", seen.run.result.name)), title


def test_the_list_of_runs_of_the_dashboard(seen: Watched) -> None:
    (variable,) = (each for each in DASHBOARD["templating"]["list"] if each["name"] == "run")
    match = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["query"])
    assert match
    (series,) = seen.ask("series", **{"match[]": match[1]})
    assert series[match[2]] == seen.run.result.name


def test_alerts_are_evaluated_and_ask_for_what_is_there(seen: Watched) -> None:
    (group,) = seen.ask("rules")["groups"]
    assert [rule["name"] for rule in group["rules"]] == ALERTS
    for rule in group["rules"]:
        assert (rule["health"], rule.get("lastError", "")) == ("ok", "")
        for name in re.findall(r"\bflagperf_\w+(?=[\[{ )]|$)", rule["query"]):
            assert name.endswith("_phase") or name == "flagperf_stage" or ever(seen, name), name


def test_a_round_that_failed_gives_an_alert(seen: Watched) -> None:
    alerts = waited_for(lambda: seen.query('ALERTS{alertname="FlagPerfRoundFailed"}'), "the alert")
    assert alerts[0]["metric"]["case"] == TRAINING and alerts[0]["metric"]["verdict"] == "FAILED"
    assert not ever(seen, 'ALERTS{alertname=~"FlagPerfPowerMissing|FlagPerfHostLost", alertstate="firing"}')


def test_promtool_has_nothing_against_the_names_and_texts_of_a_scrape(seen: Watched) -> None:
    assert b"flagperf_device_power_watts{" in seen.text
    promtool("check", "metrics", given=seen.text.decode())


# ---- the files alone


def promtool(*arguments: str, cwd: Path = OBSERVABILITY, given: str = "") -> str:
    ran = subprocess.run(
        [program("promtool"), *arguments], cwd=cwd, input=given, capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_the_document_has_every_alert() -> None:
    text = (OBSERVABILITY / "README.md").read_text()
    assert re.findall(r"^\| `(FlagPerf\w+)` \|", text, re.MULTILINE) == ALERTS


def test_promtool_has_nothing_against_configuration_and_rules() -> None:
    assert f"{len(ALERTS)} rules found" in promtool("check", "config", "prometheus.yml")


def test_no_meter_outside_a_node_speaks_for_its_monitor() -> None:
    (excepted,) = re.findall(
        r'flagperf_source_up\{source!~"(.+?)"}', (OBSERVABILITY / "alerts.yml").read_text()
    )
    assert set(excepted.split("|")) == set(METERS)


def test_each_alert_comes_when_it_should_and_not_before() -> None:
    tests = Path(__file__).parent / "alerts_test.yml"
    promtool("test", "rules", str(tests), cwd=tests.parent)
    tested = re.findall(r"alertname: (\w+)\n +exp_alerts:\n +- exp_labels", tests.read_text())
    quiet = re.findall(r"alertname: (\w+)\n +exp_alerts: \[]", tests.read_text())
    assert set(tested) == set(quiet) == set(ALERTS), "each has to come once, and once not to"
