"""What a user reads at the end: result.json, summary.json, summary.md and the tables."""

from __future__ import annotations

import json
import re
import resource
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from run_benchmarks import reading
from run_benchmarks.report.spread import spread_tables
from run_benchmarks.results import summary
from run_benchmarks.results.folder import RoundKey
from run_benchmarks.results.meanings import meanings
from run_benchmarks.results.provenance import NodeSoftware, Provenance
from run_benchmarks.results.round_result import (
    Attempt,
    RoundResult,
    continuation_notes,
    saving_notes,
    write_json,
)
from run_benchmarks.results.summary import Run, as_markdown, to_be_read, write_summary
from run_benchmarks.results.table import aligned
from run_benchmarks.results.tables import preflight_text, results_tables, results_text
from run_benchmarks.results.text import run_text
from run_benchmarks.stages.checks import Check, Status
from tests.run_benchmarks.builders import judge_folders, make_case, training_events, write_rank_log
from utils.figures import Figure
from utils.inventory import HostInventory, MonitorCost
from utils.records import Failure, FailureClass, Stage, Verdict
from utils.writing import write_whole

KILLED = Failure(
    Verdict.FAILED,
    Stage.TRAIN,
    FailureClass.RANK_KILLED,
    "h2",
    "rank 1 ended with exit code -9",
    "step 7\nstep 8",
    "read rank1.out.log in the node's folder",
)
CHECKS = {
    "h1": [Check("reachable", Status.OK, "Linux"), Check("clock", Status.WARNING, "+0.7 s", "start NTP")],
    "h2": [Check("reachable", Status.ERROR, "refused", "start sshd")],
}


@pytest.fixture
def converged(tmp_path: Path) -> RoundResult:
    """A round that went well, judged from logs."""
    folders = [tmp_path / "n0"]
    write_rank_log(folders[0], training_events(final_loss=float("nan")))
    judgement = judge_folders(make_case(), folders)
    return RoundResult(
        case="toy:pytorch:X1:2:1:1",
        round=1,
        verdict=judgement.verdict,
        figures={**judgement.figures, "round_time": Figure(21.5, "s", "the round", "the controller's clock")},
        failure=None,
        times={"train": 15.5},
        started="2026-01-02T03:04:05+00:00",
        hosts=("h1", "h2"),
        image="flagperf/acme-pytorch:0123",
        images={"h1": "sha256:1", "h2": "sha256:1"},
        facts=judgement.facts,
    )


@pytest.fixture
def broken(converged: RoundResult, tmp_path: Path) -> RoundResult:
    """A round that failed before it reported anything."""
    judgement = judge_folders(make_case(), [tmp_path / "nowhere"], KILLED)
    return replace(
        converged,
        round=2,
        verdict=judgement.verdict,
        figures=judgement.figures,
        failure=KILLED,
        notes=("units of this run may be left on h2",),
    )


def summary_of(*results: RoundResult) -> Run:
    return Run("run20260102030405", "run20260102030405-abcdef", "2026-01-02", 1, results, CHECKS)


def test_no_number_can_lose_a_summary(converged: RoundResult, tmp_path: Path) -> None:
    figure = Figure(float("nan"), "s", "x", "a clock of a host", definition="x")
    odd = replace(converged, figures={"x": figure}, facts={"deep": [{"loss": float("inf")}]})
    write_summary(tmp_path, summary_of(odd))
    (written,) = json.loads((tmp_path / "summary.json").read_text())["rounds"]
    assert written["figures"]["x"]["value"] is None and written["facts"] == {"deep": [{"loss": None}]}


def test_what_each_node_is_made_of_stands_in_the_rounds_own_file_alone(
    converged: RoundResult, tmp_path: Path
) -> None:
    """Of 256 nodes and a dozen rounds it would be more than anybody reads of a summary."""
    software = (NodeSoftware(nodes=(0, 1)),)
    origin = Provenance(
        hosts=(HostInventory("6.1"), None), software=software, monitors=(MonitorCost(1.0, 2.0, 0.5), None)
    )
    result = replace(converged, provenance=origin)
    write_summary(tmp_path, summary_of(result))
    (written,) = json.loads((tmp_path / "summary.json").read_text())["rounds"]
    assert (written["provenance"]["hosts"], written["provenance"]["monitors"]) == ([], [])
    assert written["provenance"]["software"] == []
    assert result.as_dict()["provenance"]["hosts"][0]["kernel"] == "6.1"


@pytest.mark.parametrize(
    ("facts", "bound", "most"),
    [({"x": "y" * 60_000}, "LARGEST_BYTES", 100_000), ({"x": [0] * 5_000}, "MOST_VALUES", 10_000)],
)
def test_a_summary_is_never_larger_than_its_readers_take(
    facts: dict[str, object],
    bound: str,
    most: int,
    converged: RoundResult,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Then nobody would know of the preflight, of the exit code and of other cases."""
    talking = replace(converged, facts=facts, notes=("z" * 400,) * 50)
    run = summary_of(talking, talking)
    monkeypatch.setattr(reading, bound, most)
    write_summary(tmp_path, run)
    written = reading.read_object(tmp_path / "summary.json") or {}
    assert len((tmp_path / "summary.json").read_text()) < 100_000
    assert written["notes"] == [summary.LEFT_OUT] and written["preflight"]
    assert [each["verdict"] for each in written["rounds"]] == ["CONVERGED"] * 2
    assert written["rounds"][0]["figures"].keys() == converged.figures.keys()


def test_result_json_holds_everything_and_is_json(converged: RoundResult, tmp_path: Path) -> None:
    write_json(tmp_path / "result.json", converged.as_dict())
    text = (tmp_path / "result.json").read_text()
    assert "NaN" not in text
    result = json.loads(text)
    assert result["schema"] == 3
    assert result["verdict"] == "CONVERGED"
    assert result["failure"] is None
    assert result["hosts"] == ["h1", "h2"]
    assert result["images"] == {"h1": "sha256:1", "h2": "sha256:1"}
    assert result["figures"]["p_whole"] == {
        "value": 100.0,
        "unit": "samples/s",
        "window": "TRAIN_START..TRAIN_END",
        "source": "samples / raw_train_time",
        "better": "higher",
        "definition": "samples / `raw_train_time`",
        "coverage": None,
        "caveat": "",
        "scope": "",
    }
    assert result["facts"]["num_trained_samples"] == 1000
    assert result["facts"]["final_loss"] is None


def test_a_case_of_another_code_may_report_nan(converged: RoundResult, tmp_path: Path) -> None:
    odd = replace(converged, facts={"final_loss": float("nan"), "nested": {"rates": [1.0, float("inf")]}})
    write_json(tmp_path / "result.json", odd.as_dict())
    facts = json.loads((tmp_path / "result.json").read_text())["facts"]
    assert facts == {"final_loss": None, "nested": {"rates": [1.0, None]}}


def test_a_failure_is_told_in_full(broken: RoundResult, tmp_path: Path) -> None:
    write_json(tmp_path / "result.json", broken.as_dict())
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["verdict"] == "FAILED"
    assert result["failure"] == {
        "verdict": "FAILED",
        "stage": "train",
        "class": "rank_killed",
        "host": "h2",
        "message": "rank 1 ended with exit code -9",
        "evidence": "step 7\nstep 8",
        "remedy": "read rank1.out.log in the node's folder",
        "file": "",
    }
    assert result["figures"]["p_train"]["value"] is None
    assert result["notes"] == ["units of this run may be left on h2"]


def test_a_reader_never_sees_half_a_file(converged: RoundResult, tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    write_json(path, {"old": 1})
    with pytest.raises(ValueError, match="JSON compliant"):
        write_json(path, {"new": float("nan")})
    assert json.loads(path.read_text()) == {"old": 1}


def test_a_full_disk_is_named_and_no_half_file_stays(tmp_path: Path) -> None:
    """`.summary.json.partial` stayed, and the error did not say which disk."""
    path = tmp_path / "summary.json"
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limit[1]))  # a disk that has room for 100 bytes
    try:
        with pytest.raises(OSError, match=re.escape(f"File too large: {str(path)!r}") + "$"):
            write_whole(path, "x" * 1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, before)
    assert list(tmp_path.iterdir()) == []


def test_a_link_in_the_place_of_a_half_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    (tmp_path / ".report.html.partial").symlink_to(tmp_path / "mine")
    (tmp_path / "summary.md").symlink_to(tmp_path / "mine")
    (tmp_path / ".summary.md.partial").hardlink_to(tmp_path / "mine")
    (tmp_path / "report.html").mkdir()
    with pytest.raises(OSError, match="Is a directory"):
        write_whole(tmp_path / "report.html", "new")
    write_whole(tmp_path / "summary.md", "new")
    assert (tmp_path / "mine").read_text() == "mine" and (tmp_path / "summary.md").read_text() == "new"
    assert len(list(tmp_path.iterdir())) == 5, "what was half written has gone"


def test_the_summary_is_written_both_ways(
    converged: RoundResult, broken: RoundResult, tmp_path: Path
) -> None:
    write_summary(tmp_path, summary_of(converged, broken))
    assert {path.name for path in tmp_path.iterdir() if path.is_file()} == {"summary.json", "summary.md"}
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert (summary["run"], summary["exit_code"]) == ("run20260102030405", 1)
    assert [result["verdict"] for result in summary["rounds"]] == ["CONVERGED", "FAILED"]
    assert summary["preflight"]["h1"][1] == {
        "name": "clock",
        "status": "warning",
        "detail": "+0.7 s",
        "remedy": "start NTP",
        "failure_class": None,
        "facts": {},
    }


def test_the_summary_to_be_read(converged: RoundResult, broken: RoundResult) -> None:
    text = as_markdown(summary_of(converged, broken))
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(rows) == 4  # headings, rule, two rounds
    assert len({row.count("|") for row in rows}) == 1
    assert "| CONVERGED | 15 | 21.5 | 9 | 100 | 125 | 200 | 0.000625 | 0.3300 | - | - |" in rows[2]
    assert rows[3].endswith("| FAILED | - | 21.5 |" + " - |" * 9)
    assert "samples / `raw_train_time`" in text  # what the figures mean
    assert "## toy:pytorch:X1:2:1:1, round 2: FAILED" in text
    assert "It ended at the stage train on h2 (rank_killed): rank 1 ended with exit code -9" in text
    assert "```\nstep 7\nstep 8\n```" in text
    assert "What to do: read rank1.out.log" in text
    assert "- units of this run may be left on h2" in text
    assert "round 1: CONVERGED" not in text  # nothing to say of it beside its row


def test_a_round_that_was_run_again_is_marked_and_says_why(converged: RoundResult) -> None:
    attempt = Attempt("round1.attempt1", Verdict.FAILED, FailureClass.ENGINE_FAILED, "h2", ("h1", "h2"))
    again = replace(converged, attempts=(attempt,), hosts=("h1", "h3"))
    (table, *_) = results_tables([again, replace(converged, round=2)])
    assert [row[1] for row in table.rows] == ["1 (attempt 2)", "2"]
    assert table.footnotes == (
        "toy:pytorch:X1:2:1:1, round 1 was run again, with h3 in the place of h2: "
        "round1.attempt1 does not count: FAILED (engine_failed on h2)",
    )


def test_preflight_is_told_with_what_to_do(converged: RoundResult) -> None:
    text = as_markdown(summary_of(converged))
    assert "- h1: clock: +0.7 s -> start NTP" in text
    assert "- h2: reachable: refused -> start sshd" in text


def test_a_run_that_launched_nothing_has_a_summary_too() -> None:
    text = as_markdown(summary_of())
    assert "## Results" not in text
    assert "start sshd" in text


def test_a_continued_round_is_marked_and_explained(converged: RoundResult) -> None:
    continued = {
        "run": "run1",
        "file": "/ck/step00000040.ckpt",
        "step": 40,
        "skipped": ["step00000050.ckpt is cut"],
    }
    result = replace(converged, continued=continued, notes=tuple(continuation_notes(continued)))
    assert row_of(result)[1] == "1 (from step 40)"
    assert row_of(converged)[1] == "1"
    text = as_markdown(summary_of(result))
    assert "- continued from step 40 of run1: times, rates and energy are of this part only" in text
    assert "- a newer checkpoint was passed over: step00000050.ckpt is cut" in text
    assert result.as_dict()["continued"] == continued
    assert converged.as_dict()["continued"] is None
    assert continuation_notes(None) == []


@pytest.mark.parametrize("failed", [None, 0, "3"])
def test_only_checkpoints_that_were_not_written_deserve_a_note(failed: object) -> None:
    assert saving_notes({"failed_checkpoints": failed}) == saving_notes({}) == []
    assert saving_notes({"failed_checkpoints": 3})[0].startswith("3 checkpoints could not be written")


def row_of(result: RoundResult) -> tuple[str, ...]:
    """The row of a round in the table of rounds."""
    return results_tables([result])[0].rows[0]


def test_columns_follow_from_the_results_shown(converged: RoundResult, broken: RoundResult) -> None:
    (table,) = results_tables([converged, broken])
    assert table.headings[:6] == ("case", "round", "verdict", "e2e s", "round s", "to target s")
    assert table.headings[-3:] == ("mem GiB", "energy J", "rules")
    assert [len(row) for row in table.rows] == [len(table.headings)] * 2
    assert table.rows[1][3:] == ("-", "21.5", *("-",) * (len(table.headings) - 5))
    (bare,) = results_tables([replace(broken, figures={})])
    assert bare.headings == ("case", "round", "verdict", "rules")


def test_a_figure_that_is_0_is_shown_as_0(converged: RoundResult) -> None:
    figures = {"acc": Figure(0.0, "accuracy", "last evaluation", "x")}
    assert "0" in row_of(replace(converged, figures=figures))


def test_what_is_to_be_known_of_a_value_is_marked_and_stands_below_the_table(converged: RoundResult) -> None:
    partly = Figure(123.4, "J/node", "training", "rapl", coverage=0.7, caveat="only 70 % was sampled")
    result = replace(converged, figures={**converged.figures, "energy": partly})
    (table,) = results_tables([converged, result])
    assert [row[-2] for row in table.rows] == ["-", "123*"]
    note = "energy of toy:pytorch:X1:2:1:1, round 1: only 70 % was sampled"
    assert table.text().endswith(f"\n* {note}")
    assert table.markdown().endswith(f"\n\n\\* {note}")
    assert max(map(len, table.text(60).splitlines())) <= 60
    (table,) = results_tables([replace(result, figures={"energy": replace(partly, value=None)})])
    assert (table.rows[0][-2], table.footnotes) == ("-*", (f"* {note}",))


def test_the_spread_is_of_rounds_that_were_run_whole(converged: RoundResult) -> None:
    """What a continued round measured in its last part alone is no value beside the others."""
    energy = Figure(1000.0, "J/node", "training", "rapl", "lower", coverage=1.0, scope="machine")
    whole = replace(converged, figures={**converged.figures, "energy": energy})
    last = replace(whole, figures={"energy": replace(energy, value=10.0)}, continued={"step": 90})
    ((_, table),) = spread_tables([whole, whole, whole, last])
    (row,) = (row for row in table.rows if row[0] == "energy")
    assert row[2:5] == ("3", "1000", "1000")
    of_chips = replace(whole, figures={**whole.figures, "energy": replace(energy, scope="accelerator")})
    ((_, table),) = spread_tables([whole, whole, of_chips])
    assert "energy" not in [row[0] for row in table.rows]


def test_mlperfs_mean_counts_rounds_that_were_lost(converged: RoundResult) -> None:
    time = Figure(60.0, "s", "training", "FINISHED", "lower")
    whole = replace(converged, figures={**converged.figures, "time_to_target": time})
    notes = []
    for lost in (0, 1, 2):
        ((_, table),) = spread_tables(
            [whole] * 3, [RoundKey(whole.case, 4 + number) for number in range(lost)]
        )
        notes.append(table.footnotes[-1].partition("(MLPerf's rule): ")[2])
    assert notes == ["60 s", "60 s", "none: 2 of 5 rounds did not converge: the set is invalid"]


RATE = Figure(71.27, "TFLOP/s", "25 windows", "FINISHED", "higher", "median rate")


def measured(number: int, **figures: Figure) -> RoundResult:
    own = {"e2e_time": Figure(5.0, "s", "all of it", "FINISHED"), **figures}
    return RoundResult(
        case="gemm",
        round=number,
        started="2026-01-02",
        hosts=("h1",),
        kind="measure",
        verdict=Verdict.MEASURED,
        figures=own,
    )


def test_values_of_other_units_do_not_stand_in_one_row() -> None:
    rounds = [measured(1, rate=replace(RATE, unit="GB/s")), measured(2, rate=replace(RATE, unit="MB/s"))]
    table = next(each for each in results_tables(rounds) if each.headings[0] == "gemm")
    assert table.rows == (("rate", "GB/s", "higher", "71.3", "-"), ("rate", "MB/s", "higher", "-", "71.3"))


def test_figures_of_a_case_have_a_row_each_and_a_column_a_round(converged: RoundResult) -> None:
    unknown = replace(RATE, value=None, source="the peak of X1 in bf16 is not known")
    rounds = [
        measured(1, bf16=RATE, bf16_of_peak=unknown),
        measured(2, bf16=replace(RATE, value=0.0001234), fp32=replace(RATE, value=1234567.8, better=None)),
    ]
    training, measure, own = results_tables([converged, *rounds])
    assert "p_whole /s" in training.headings and len(training.rows) == 1
    assert measure.headings == ("case", "round", "verdict", "e2e s", "rules")
    assert own.headings == ("gemm", "unit", "better", "round 1", "round 2")
    assert own.rows == (
        ("bf16", "TFLOP/s", "higher", "71.3", "0.000123"),
        ("fp32", "TFLOP/s", "-", "-", "1234568"),
    )
    lines = meanings(rounds[:1])
    assert "`bf16` (TFLOP/s; higher is better): median rate; FINISHED" in lines
    assert "no `bf16_of_peak`: the peak of X1 in bf16 is not known" in lines


@pytest.mark.parametrize("width", [60, 80, 100])
def test_a_table_that_is_too_wide_is_broken_into_parts(width: int, converged: RoundResult) -> None:
    """Each case stands above its rounds, however long its name is."""
    other = replace(converged, case="an-acme-vendor/bert:pytorch_2.9:A100-SXM4-80GB:16:8:10")
    whole = results_text([converged, other], None)
    parts = results_text([converged, other], width)
    assert len(whole.splitlines()[0]) > width >= max(map(len, parts.splitlines()))
    assert set(whole.split()) - {"case"} == set(parts.split())
    blocks = parts.split(f"\n\n{other.case}\n")
    assert len(blocks) == 2 and blocks[0].startswith(f"{converged.case}\nround  verdict  ")
    assert all(len(block.splitlines()) <= 15 for block in blocks)
    assert results_text([converged, other], 400) == whole
    assert results_text([converged], 10)  # nothing fits: a column a part


def test_a_figure_of_a_case_that_is_to_be_marked_is_explained_below(converged: RoundResult) -> None:
    figures = {name: Figure(1.5, "GB/s", "20 windows", "FINISHED", caveat=caveat) for name, caveat in
               (("copy", "not steady"), ("scan", ""))}  # fmt: skip
    _, own = results_tables([replace(converged, figures={**converged.figures, **figures})])
    assert [row[3] for row in own.rows] == ["1.50*", "1.50"]
    assert own.footnotes == (f"* copy of {converged.case}, round {converged.round}: not steady",)


def test_a_cell_cannot_break_out_of_its_table(converged: RoundResult) -> None:
    (table,) = results_tables([replace(converged, case="a|b")])
    assert "| a\\|b | 1 |" in table.markdown()


def test_every_figure_shown_is_explained_once(converged: RoundResult) -> None:
    lines = meanings([converged, replace(converged, round=2), replace(converged, case="other")])
    headings = results_tables([converged])[0].headings[3:]
    assert [sum(f"`{heading}`" in line.split(":")[0] for line in lines) for heading in headings] == [1] * len(
        headings
    )
    (mfu,) = [line for line in lines if line.startswith("`MFU`")]
    assert "a data sheet" in mfu
    assert (
        "no `mem GiB`: mem_allocated_bytes is not reported, as by a device without memory of its own (cpu)"
        in lines
    )
    assert "`p_train /s` (samples/s; higher is better): samples / `no_eval_time`" in lines
    assert "`e2e s` (s; lower is better): first line of rank 0's training script to FINISHED" in lines


def test_where_a_figure_comes_from_is_said_of_each_case_that_differs(converged: RoundResult) -> None:
    def with_energy(case: str, value: float | None, source: str) -> RoundResult:
        energy = Figure(value, "J/node", "training", source, "lower", "energy of a node")
        return replace(converged, case=case, figures={"energy": energy})

    rounds = [
        with_energy("a", 1.0, "the meter"),
        with_energy("b", 2.0, "rapl"),
        with_energy("c", None, "no source"),
        with_energy("d", None, "no source"),
    ]
    lines = meanings(rounds)
    assert lines[0] == "`energy J` (J/node; lower is better): energy of a node; the meter (a); rapl (b)"
    assert lines[1] == "no `energy J` (c, d): no source"


def test_a_round_that_failed_says_so_first_and_not_again_with_each_figure(broken: RoundResult) -> None:
    text = as_markdown(summary_of(broken))
    assert "exit code 1: 1 of 1 rounds did not succeed: toy:pytorch:X1:2:1:1 round 2 FAILED." in text
    assert (
        text.index("round 2: FAILED\n") < text.index("## What the figures mean") < text.index("## Preflight")
    )
    assert not [line for line in meanings([broken]) if line.startswith("no ")]


def test_a_round_that_did_not_converge_has_its_section(converged: RoundResult) -> None:
    short = replace(
        converged, verdict=Verdict.NOT_CONVERGED, shortfall="training came to its cap, max_steps = 9"
    )
    run = summary_of(short)
    text = as_markdown(run)
    section = text[
        text.index("## toy:pytorch:X1:2:1:1, round 1: NOT") : text.index("## What the figures mean")
    ]
    assert "It did not converge: training came to its cap, max_steps = 9" in section
    assert "What to do: see the evaluations in toy:pytorch:X1:2:1:1/round1/h1_noderank0/rank0" in section
    shown = run_text(run, 80)
    assert "  training came to its cap, max_steps = 9\n  -> see the evaluations in" in shown
    assert "docs/failures.md, NOT_CONVERGED" in shown


def test_events_and_endless_lines_are_kept_from_a_reader_unless_there_is_nothing_else() -> None:
    event = '[PerfLog] {"event": "STEP_END"}'
    assert to_be_read(f"{event}\nTraceback\n{event}\nKeyError: 'x'") == "Traceback\nKeyError: 'x'"
    assert to_be_read(event) == event
    assert to_be_read("x" * 5000).endswith("xxx... (5000 characters in all)")


def test_columns_are_aligned() -> None:
    assert aligned([("a", "bb"), ("ccc", "d")]) == "a    bb\nccc  d"
    assert aligned([]) == ""


def test_the_preflight_table_has_a_row_a_host_and_a_column_a_check() -> None:
    lines = preflight_text(CHECKS).splitlines()
    assert lines[0].split() == ["host", "reachable", "clock"]
    assert lines[1].split() == ["h1", "ok", "WARN"]
    assert lines[2].split() == ["h2", "FAILED", "-"]
    assert preflight_text({}) == "host"


def test_what_would_steer_a_terminal_or_cannot_be_written_is_replaced(broken: RoundResult) -> None:
    failure = replace(KILLED, evidence="\x1b]0;x\a\ud800")
    assert "\ufffd]0;x\ufffd\ufffd" in as_markdown(summary_of(replace(broken, failure=failure)))


def test_a_figure_just_below_ten_thousand_has_no_exponent(converged: RoundResult) -> None:
    result = replace(converged, figures={"x": Figure(9999.6, "s", "all", "FINISHED")})
    assert "10000" in results_text([result], None)
