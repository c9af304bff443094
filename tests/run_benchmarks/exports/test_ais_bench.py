"""A run as ais-bench reports it: its fifteen fields, all texts, and its line of throughputs."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks.exports.ais_bench import export_ais_bench
from run_benchmarks.exports.chosen import rounds_in
from run_benchmarks.exports.mlperf_log import why_not
from run_benchmarks.plan.secrets import by_name_alone
from run_benchmarks.results.load import load_run
from run_benchmarks.results.round_result import write_json
from run_benchmarks.verbs import main
from tests.run_benchmarks.exports.demo_run import CASE, change_events, copied, rank_log
from utils.errors import FlagPerfError
from utils.telemetry.lines import record_line
from utils.telemetry.records import Sample, Scope, SourceInfo

FIELDS = {
    "accuracy", "throughput_ratio", "average_power", "max_power", "energy_consumption", "efficientcy",
    "resource_util_ratio",
    *(f"{phase}_{end}_time" for phase in ("dataload", "prepare", "proc", "total") for end in ("start", "end")),
}  # fmt: skip
FOLDER = "bert_pytorch_cpu_1_1_2"


def test_the_fields_of_a_round_and_the_line_of_its_case(tmp_path: Path) -> None:
    run = copied(tmp_path, rounds=2)
    assert export_ais_bench(run, tmp_path / "out", by_name_alone) == [
        f"case {CASE}, round 3 is left out: INTERRUPTED"
    ]
    folder = tmp_path / "out" / FOLDER
    info = json.loads((folder / "round1.json").read_text())
    assert set(info) == FIELDS and len(FIELDS) == 15
    assert all(type(value) is str for value in info.values())
    figures = load_run(run, by_name_alone).results[0].figures
    assert float(info["throughput_ratio"]) == figures["p_train"].value
    assert float(info["accuracy"]) == figures["acc"].value
    assert {name for name, value in info.items() if not value} == {
        "average_power", "max_power", "energy_consumption", "efficientcy", "resource_util_ratio",
        "dataload_start_time", "dataload_end_time",
    }, "what was not measured is empty, and not 0"  # fmt: skip
    times = [info[f"{name}_time"] for name in ("prepare_start", "prepare_end", "proc_start", "proc_end")]
    assert times[0] == "2026-11-22 08:20:43"
    assert [info["total_start_time"], *times, info["total_end_time"]] == sorted(
        [info["total_start_time"], *times, info["total_end_time"]]
    )
    report = (folder / "report.log").read_text()
    line = re.search(r"^report >> throughput_list:(\[.*\]) average:(.*)$", report, re.MULTILINE)
    assert line is not None
    throughputs = ast.literal_eval(line[1])
    assert throughputs == [figures["p_train"].value] * 2
    assert float(line[2]) == pytest.approx(throughputs[0])
    assert report.count('train_result_info: {\n   "accuracy" : "0.14722603411095864",\n') == 2


def test_of_a_part_of_a_training_nothing_is_reported(tmp_path: Path) -> None:
    run = copied(tmp_path, rounds=2)

    first, second = (each.as_dict() for each in load_run(run, by_name_alone).results[:2])
    measured = {"value": 9.0, "scope": "machine", "coverage": 1.0}
    first["figures"]["energy"] |= measured
    first["figures"]["avg_power"] |= {**measured, "coverage": 0.6}
    write_json(run / CASE / "round1" / "result.json", first)
    write_json(run / CASE / "round2" / "result.json", {**second, "continued": {"run": "earlier", "step": 5}})
    notes = export_ais_bench(run, tmp_path / "out", by_name_alone)
    assert f"case {CASE}, round 2 is left out: it went on from a checkpoint" in notes[0]
    info = json.loads((tmp_path / "out" / FOLDER / "round1.json").read_text())
    assert (info["energy_consumption"], info["average_power"]) == ("9.0", "")


def test_what_a_stand_in_computed_is_exported_nowhere(tmp_path: Path) -> None:
    run = copied(tmp_path)

    def stands_in(name: str, value: dict[str, Any]) -> None:
        if name == "INIT_END":
            value["stand_in"] = {"device": "npu"}

    change_events(rank_log(run), stands_in)
    first, *_ = rounds_in(run, by_name_alone)
    assert why_not(first, first.events()).startswith("stand-in: a stand-in computed on the CPU")
    with pytest.raises(FlagPerfError, match="is left out: stand-in: a stand-in computed on the CPU"):
        export_ais_bench(run, tmp_path / "out", by_name_alone)


def test_the_use_of_accelerators_while_they_trained_is_in_percent(tmp_path: Path) -> None:
    run = copied(tmp_path)
    start, end = 1795335664354, 1795336795338
    uses = {start - 5000: 0.0, start + 1000: 0.5, end - 1000: 1.0, end + 5000: 0.0}
    records = [
        SourceInfo(start, "nvml", Scope.ACCELERATOR, 1.0),
        *(Sample(time_ms, "nvml", "0", utilisation=use) for time_ms, use in uses.items()),
    ]
    lines = [f"{record_line(record)}\n" for record in records]
    (rank_log(run).parent / "telemetry.jsonl").write_text("".join(lines))
    export_ais_bench(run, tmp_path / "out", by_name_alone)
    info = json.loads((tmp_path / "out" / FOLDER / "round1.json").read_text())
    assert float(info["resource_util_ratio"]) == 75.0


def test_nothing_is_written_over_and_nothing_is_left_of_what_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, out = copied(tmp_path), tmp_path / "out"
    out.mkdir()
    (out / "mine").write_text("kept")
    for form in ("ais-bench", "mlperf", "archive"):
        assert main(["export", str(run), "--format", form, "--output", str(out)]) == 2
        assert "is there already" in capsys.readouterr().err
    assert (out / "mine").read_text() == "kept"
    rank_log(run).unlink()
    assert main(["export", str(run), "--format", "ais-bench", "--output", str(tmp_path / "other")]) == 2
    assert "no round succeeded" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", run.name]


def test_it_lies_beside_the_run_where_nobody_says_another_place(tmp_path: Path) -> None:
    """What lay in `training/` would be taken for code."""
    run = copied(tmp_path)
    assert main(["export", str(run), "--format", "ais-bench"]) == 0
    assert (tmp_path / f"{run.name}-ais-bench").is_dir()
