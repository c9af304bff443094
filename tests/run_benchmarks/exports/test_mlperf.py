"""MLPerf's log of a real round of the demo, before MLPerf's own checkers; nothing in it that did not happen."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from mlperf_logging.compliance_checker import mlp_compliance, mlp_parser
from mlperf_logging.result_summarizer.result_summarizer import _compute_power_node
from mlperf_logging.system_desc_checker.system_desc_checker import check_system_desc

from run_benchmarks.exports import mlperf_power
from run_benchmarks.exports.chosen import rounds_in
from run_benchmarks.exports.mlperf import export_mlperf
from run_benchmarks.exports.mlperf_log import LABEL
from run_benchmarks.exports.system_description import FIELDS, system_description
from run_benchmarks.plan.secrets import Secrets, by_name_alone
from run_benchmarks.verbs import main
from tests.run_benchmarks.exports.demo_run import (
    CASE,
    change_events,
    change_json,
    copied,
    make_closed,
    rank_log,
)
from utils.telemetry.lines import record_line
from utils.telemetry.records import Sample, Scope, SourceInfo

RULES = Path(mlp_compliance.__file__).parent / "training_5.0.0"
OWNER = {"submitter": "Acme Labs", "cooling": "air"}
RESULTS = Path(__file__).parents[1] / "results"
SYSTEM = "bert_pytorch_cpu_1_1_2"
LOG = "bert/result_0.txt"


@pytest.fixture(autouse=True)
def quiet_checkers() -> Iterator[None]:
    """They log to the root logger, and make a handler that prints where it has none."""
    handler = logging.NullHandler()
    logging.getLogger().addHandler(handler)
    yield
    logging.getLogger().removeHandler(handler)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The log of the demo's round, which is open, and of one that is closed."""
    folder = tmp_path_factory.mktemp("mlperf")
    paths = {}
    for division in ("open", "closed"):
        run = copied(folder / division)
        if division == "closed":
            make_closed(run)
        export_mlperf(run, folder / f"{division}.out", OWNER, by_name_alone)
        paths[division] = folder / f"{division}.out" / "results" / SYSTEM / "bert" / "result_0.txt"
    return paths


def passes(path: Path) -> bool:
    checker = mlp_compliance.make_checker("training", "5.0.0", True, False)
    return bool(mlp_compliance.main(str(path), "training_5.0.0/common.yaml", checker)[0])


def lines_of(path: Path) -> list[dict[str, Any]]:
    lines = (line.removeprefix(":::MLLOG ") for line in path.read_text().splitlines() if ":::MLLOG" in line)
    return [json.loads(line) for line in lines]


def keys_that_are_asked_for(division: str) -> list[tuple[str, ...]]:
    """By the rules themselves: each alone, and together those of which one is enough."""
    files = ["common.yaml", f"{division}_common.yaml", f"{division}_bert.yaml"]
    asked: set[tuple[str, ...]] = set()
    for file in files:
        for entry in yaml.safe_load((RULES / file).read_text()):
            rule = entry.get("KEY", {"REQ": ""})
            others = re.findall(r"AT_LEAST_ONE_OR\((.*)\)", rule.get("REQ", ""))
            if others or rule.get("REQ") in ("EXACTLY_ONE", "AT_LEAST_ONE"):
                asked.add(tuple(sorted({rule["NAME"], *others})))
    return sorted(asked)


@pytest.mark.parametrize("division", ["open", "closed"])
def test_the_official_checker_passes_it_and_misses_every_key_that_is_taken_out(
    division: str, logs: dict[str, Path], tmp_path: Path
) -> None:
    log = logs[division]
    assert passes(log)
    (stamp,) = [line["value"] for line in lines_of(log) if line["key"] == "submission_division"]
    assert stamp == division
    asked = keys_that_are_asked_for(division)
    assert len(asked) >= {"open": 13, "closed": 23}[division]
    for keys in asked:
        marks = [f'"key": "{key}"' for key in keys]
        kept = [line for line in log.read_text().splitlines() if not any(mark in line for mark in marks)]
        path = tmp_path / "without.txt"
        path.write_text("\n".join(kept))
        assert not passes(path), keys


def test_its_lines_are_the_events(logs: dict[str, Path]) -> None:
    lines = lines_of(logs["open"])
    value = {line["key"]: line["value"] for line in lines}
    assert (value["seed"], value["global_batch_size"], value["opt_base_learning_rate"]) == (42, 64, 0.002)
    assert (value["train_samples"], value["eval_samples"], value["cache_clear"]) == (19200, 1024, True)
    assert not any("lamb" in line["key"] for line in lines), "the demo trains with AdamW"
    times = [line["time_ms"] for line in lines]
    assert times == sorted(times)
    accuracies = [
        (line["metadata"]["epoch_num"], line["value"]) for line in lines if line["key"] == "eval_accuracy"
    ]
    assert [samples for samples, _ in accuracies] == [6400, 12800, 19200] and accuracies[-1][1] > 0.14
    order = [line["key"] for line in lines if line["event_type"] != "POINT_IN_TIME"]
    block = ["block_start", "block_stop", "eval_start", "eval_stop"]
    assert order == ["init_start", "init_stop", "run_start", *block * 3, "run_stop"]
    (stop,) = [line for line in lines if line["key"] == "run_stop"]
    assert stop["metadata"]["status"] == "success"


def test_no_secret_that_a_rank_wrote_is_in_its_lines(tmp_path: Path) -> None:
    run = copied(tmp_path)
    words = {"optimizer": 'open "sesame"', "seed": ["sesame", {"sesame": 1}]}
    change_events(
        rank_log(run), lambda name, value: value["config"].update(words) if name == "INIT_START" else None
    )
    notes = export_mlperf(run, tmp_path / "out", {}, lambda: Secrets(held=frozenset({"sesame"})))
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert "sesame" not in "".join([*notes, *(path.read_text() for path in files)])
    value = {line["key"]: line["value"] for line in lines_of(tmp_path / "out" / "results" / SYSTEM / LOG)}
    assert (value["opt_name"], value["seed"]) == ('open "***"', ["***", {"***": 1}])


def test_it_says_what_it_is_not(logs: dict[str, Path]) -> None:
    text = logs["closed"].read_text()
    assert text.startswith(f"# {LABEL}\n")
    assert [line["value"] for line in lines_of(logs["closed"]) if line["key"] == "submission_status"] == [
        LABEL
    ]
    assert LABEL in (logs["closed"].parents[3] / "README.md").read_text()
    assert text.splitlines()[-1] == "RESULT,BERT,,1130.960,Acme Labs,2026-11-22 08:20:43 AM"


def test_what_did_not_happen_is_not_in_it_and_the_export_says_what_is_missed(tmp_path: Path) -> None:
    run = copied(tmp_path)
    change_json(run / "plan.json", lambda plan: plan["run"].update(clear_caches=False))
    change_events(rank_log(run), lambda name, value: value.pop("num_eval_samples", None) and None)
    notes = export_mlperf(run, tmp_path / "out", {}, by_name_alone)
    log = tmp_path / "out" / "results" / SYSTEM / "bert" / "result_0.txt"
    assert not {"cache_clear", "eval_samples"} & {line["key"] for line in lines_of(log)}
    missed = [note for note in notes if "does not pass" in note]
    assert [re.findall("'(.*)'", note) for note in missed] == [["cache_clear"], ["eval_samples"]]
    assert all(
        note.partition(":")[2].strip() in (tmp_path / "out" / "README.md").read_text() for note in missed
    )


@pytest.mark.parametrize(
    ("accuracy", "division", "reason"),
    [(0.73, "closed", "nothing differs"), (0.719, "open", "did not converge|asks for an accuracy of 0.72")],
)
def test_closed_is_what_kept_to_the_rules_and_met_the_target(
    accuracy: float, division: str, reason: str, tmp_path: Path
) -> None:
    run = copied(tmp_path)
    make_closed(run, accuracy)
    (note,) = [
        note for note in export_mlperf(run, tmp_path / "out", {}, by_name_alone) if "result_0.txt:" in note
    ]
    assert f"result_0.txt: {division}: " in note and re.search(reason, note)


def test_a_set_of_rounds_has_a_seed_each_and_its_mean(tmp_path: Path) -> None:
    run = copied(tmp_path, rounds=3)
    for number, seconds in ((2, 1125.0), (3, 1128.0)):

        def of_round(
            name: str, value: dict[str, Any], number: int = number, seconds: float = seconds
        ) -> None:
            if name == "INIT_START":
                value["config"]["seed"] += number - 1
            if name == "FINISHED":
                value["time_to_target"] = seconds

        change_events(rank_log(run, number), of_round)
    notes = export_mlperf(run, tmp_path / "out", {}, by_name_alone)
    folder = tmp_path / "out" / "results" / SYSTEM / "bert"
    logs = sorted(folder.iterdir())
    assert [log.name for log in logs] == ["result_0.txt", "result_1.txt", "result_2.txt"]
    seeds = [line["value"] for log in logs for line in lines_of(log) if line["key"] == "seed"]
    assert seeds == [42, 43, 44]
    assert not any("share a seed" in note for note in notes)
    assert f"case {CASE}, round 4 is left out: rank 0's log has no TRAIN_END (INTERRUPTED)" in notes
    # of 1125, 1128, 1130.96 and the one that did not converge
    mean = (1128.0 + 1130.960) / 2
    assert any(f"without the fastest and the slowest: {mean:.3f}" in note for note in notes), notes[-1]


def test_rounds_with_one_seed_are_said_and_what_did_not_converge_has_no_result_line(tmp_path: Path) -> None:
    run = copied(tmp_path, rounds=2)

    def not_met(name: str, value: dict[str, Any]) -> None:
        if name == "EVALUATE":
            value["mlm_accuracy"] = min(value["mlm_accuracy"], 0.139)
        if name == "FINISHED":
            value |= {"converged": False, "time_to_target": None, "final_mlm_accuracy": 0.139}

    change_events(rank_log(run, 2), not_met)
    change_events(rank_log(run, 2), lambda name, value: value.get("config", {}).update(seed=42))
    notes = export_mlperf(run, tmp_path / "out", {}, by_name_alone)
    assert any("rounds share a seed (42, 42)" in note for note in notes)
    log = tmp_path / "out" / "results" / SYSTEM / "bert" / "result_1.txt"
    assert "RESULT," not in log.read_text() and '"status": "aborted"' in log.read_text()


def test_a_system_description_that_the_official_checker_passes(tmp_path: Path) -> None:
    run = copied(tmp_path)
    export_mlperf(run, tmp_path / "out", {**OWNER, "status": "Available on-premise"}, by_name_alone)
    path = tmp_path / "out" / "systems" / f"{SYSTEM}.json"
    assert check_system_desc(str(path), "training", "5.0.0")[0]
    described = json.loads(path.read_text())
    assert set(described) == set(FIELDS)
    assert (described["submitter"], described["cooling"], described["division"]) == (
        "Acme Labs",
        "air",
        "open",
    )
    assert (described["number_of_nodes"], described["accelerators_per_node"]) == ("1", "0")
    assert described["host_storage_type"] == "not recorded"
    for field in FIELDS:
        path.write_text(json.dumps({name: value for name, value in described.items() if name != field}))
        assert not check_system_desc(str(path), "training", "5.0.0")[0], field


def test_what_the_owner_says_is_checked_all_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = {"division": "closed", "coolin": "air", "status": "sold", "submitter": "../x", "hw_notes": 5}
    (tmp_path / "system.json").write_text(json.dumps(words))
    run, out = copied(tmp_path), tmp_path / "out"
    argv = ["export", str(run), "--format", "mlperf", "--output", str(out)]
    assert main([*argv, "--system", str(tmp_path / "system.json")]) == 2
    error = capsys.readouterr().err
    assert "5 problems" in error and "cooling" in error and "is the run's to say" in error
    assert not out.exists()


def test_a_run_without_bert_has_no_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    digits = RESULTS / "schema1" / "converged" / "run20261121214220"
    assert main(["export", str(digits), "--format", "mlperf", "--output", str(tmp_path / "out")]) == 2
    assert "there is no round to export" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_what_provenance_has_is_in_the_system_description() -> None:
    (each,) = rounds_in(RESULTS / "schema3" / "run20261122083027", by_name_alone)
    described = system_description(each, "open", {"host_networking": "25 GbE"}, "a system")
    assert described["host_processor_model_name"] == "Intel(R) Xeon(R) Processor"
    assert (described["host_processor_core_count"], described["host_memory_capacity"]) == ("2", "23.5 GiB")
    assert described["framework"] == "pytorch (torch 2.13.0+cpu)"
    assert described["operating_system"] == "Debian GNU/Linux 12 (bookworm)"
    assert described["host_networking"] == "25 GbE", "the owner knows better"
    assert "L2 cache 4 MiB" in described["host_processor_caches"]


def test_power_is_logged_where_it_was_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = copied(tmp_path)
    start, end = 1795335664354, 1795336795338
    records = [SourceInfo(start, "acpi", Scope.MACHINE, 1.0)]
    records += [Sample(at, "acpi", "", power_w=200.0) for at in range(start - 1000, end + 2000, 1000)]
    (rank_log(run).parent / "telemetry.jsonl").write_text("".join(map(record_line, records)))
    notes = export_mlperf(run, tmp_path / "out", {}, by_name_alone)
    assert not any("no power" in note for note in notes)
    folder = tmp_path / "out" / "results" / SYSTEM / "bert" / "power" / "result_0"
    (log,) = folder.iterdir()
    readings = [line["value"] for line in lines_of(log) if line["key"] == "power_reading"]
    assert log.name == "node_0.txt" and set(readings) == {200.0}
    loglines, errors = mlp_parser.parse_file(str(log), ruleset="5.0.0")
    joules = _compute_power_node(loglines, end - start)
    assert not errors and joules == pytest.approx(200.0 * (end - start) / 1000, rel=0.01)
    monkeypatch.setattr(mlperf_power, "MOST_READINGS", 10)
    notes = export_mlperf(run, tmp_path / "few", {}, by_name_alone)
    assert any("readings of power, more than the 10 that are exported" in note for note in notes)
    (rank_log(run).parent / "telemetry.jsonl").unlink()
    notes = export_mlperf(run, tmp_path / "without", {}, by_name_alone)
    assert any("no power: localhost_noderank0" in note for note in notes)
    assert not (tmp_path / "without" / "results" / SYSTEM / "bert" / "power").exists()
