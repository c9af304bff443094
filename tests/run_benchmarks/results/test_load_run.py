"""A run is read back from its folder alone: what was written, what was torn, a stranger's, an earlier version's.

`schema1/` holds runs of the digits by the version before `round.json`: one that converged, one that did not, one
that failed and one whose controller was killed in its second round. `schema2/` and `schema3/` hold a run each: of the
last version whose results did not say where they come from, and of the first whose did. Their logs and their lists of
packages are shortened.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from run_benchmarks import reading
from run_benchmarks.exports.chosen import Round
from run_benchmarks.journal import Journal, is_held
from run_benchmarks.plan.secrets import by_name_alone
from run_benchmarks.report.rounds import round_view
from run_benchmarks.results import folder as folder_module
from run_benchmarks.results import journal_entries, load, round_folders
from run_benchmarks.results.folder import MOST_WRONG, open_folder, summed_up
from run_benchmarks.results.load import load_run
from run_benchmarks.results.rescore import rescore
from run_benchmarks.results.round_result import RoundResult, write_json
from run_benchmarks.results.summary import LEFT_OUT, Run, without_nodes
from run_benchmarks.results.text import run_text
from tests.run_benchmarks.written_run import NAME, SCHEMA1, UID, write_run
from utils.errors import FlagPerfError
from utils.figures import DEFINITIONS
from utils.records import Failure, FailureClass, Stage, Verdict


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return write_run(tmp_path / "run")


@pytest.fixture
def folder(run: Run, tmp_path: Path) -> Path:
    return tmp_path / "run"


def by_round(loaded: Run) -> dict[int, RoundResult]:
    return {result.round: result for result in loaded.results}


def test_of_a_file_of_wrong_entries_a_few_are_noted_and_the_rest_is_not_read(folder: Path) -> None:
    """A stranger's folder may hold a million of them, each of which would have its note."""
    first, *_ = (folder / "journal.jsonl").read_text().splitlines()
    (folder / "journal.jsonl").write_text(f"{first}\n" + "\n" * 100_000 + first)
    for name, key in (("plan.json", "cases"), ("summary.json", "rounds")):
        content = json.loads((folder / name).read_text())
        (folder / name).write_text(
            json.dumps({**content, key: [*content[key], *[{"x": "y" * 5000}] * 5_000]})
        )
    opened = open_folder(folder)
    assert len(opened.journal) == 1 and len(opened.cases) == 1 and len(summed_up(opened)) == 3
    assert len(opened.notes) == 3 * (MOST_WRONG + 1) and max(map(len, opened.notes)) < 5_000
    assert sum("what follows is not looked at" in note for note in opened.notes) == 3
    assert by_round(load_run(folder, by_name_alone)).keys() == {1, 2, 3}


@pytest.mark.parametrize("is_judged", [False, True])
def test_of_results_without_bounds_the_first_are_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch, is_judged: bool
) -> None:
    """Each is within its own bound, and there may be any number of them."""
    result = next(folder.glob("*/round1/result.json"))
    monkeypatch.setattr(load, "MOST_BYTES", result.stat().st_size)
    if is_judged:
        result.unlink()
        monkeypatch.setattr(load, "MOST_BYTES", 0)
        for path in folder.glob("*/round*/result.json"):
            path.write_text("")
    assert by_round(load_run(folder, by_name_alone)).keys() == {1, 2, 3}, (
        "those that are not read stand in the summary"
    )
    (folder / "summary.json").unlink()
    loaded = load_run(folder, by_name_alone)
    assert by_round(loaded).keys() == {1}
    what = "judged: the results" if is_judged else "read: with it the results"
    assert any(f"round 2 is not {what} hold more than" in note for note in loaded.notes)


def test_one_result_that_is_too_large_costs_none_of_those_that_follow(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "summary.json").unlink()
    first = next(folder.glob("*/round1/result.json"))
    others = sum(path.stat().st_size for path in folder.glob("*/round*/result.json"))
    first.write_text(first.read_text() + " " * others)
    monkeypatch.setattr(load, "MOST_BYTES", others)
    (folder / "journal.jsonl").unlink()
    loaded = load_run(folder, by_name_alone)
    assert by_round(loaded).keys() == {2, 3}
    assert any("round 1 has no result: what its folder has was not read" in note for note in loaded.notes)


def test_the_values_of_many_files_are_taken_together(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thirty-two results and a journal, each within its own bounds, took 6 GB and two minutes."""
    (folder / "summary.json").unlink()
    plan = (folder / "plan.json").read_text()
    first = next(folder.glob("*/round1/result.json")).read_text()
    monkeypatch.setattr(folder_module, "MOST_VALUES", reading.values_in(plan + first) + 10)
    monkeypatch.setattr(journal_entries, "MOST_VALUES", 1)
    loaded = load_run(folder, by_name_alone)
    assert by_round(loaded).keys() == {1}
    for part in ("round2/result.json: holds", "journal.jsonl:1: holds"):
        assert any(part in note and "values, more than the" in note for note in loaded.notes), part


def test_values_of_a_result_that_is_read_are_bounded_as_those_of_one_that_is_judged(folder: Path) -> None:
    (folder / "summary.json").unlink()
    path = next(folder.glob("*/round1/result.json"))
    content = json.loads(path.read_text())
    content["facts"]["many"] = [{}] * 10_000
    path.write_text(json.dumps(content))
    result = by_round(load_run(folder, by_name_alone))[1]
    assert "many" not in result.facts and result.facts
    assert any("FINISHED: 1 value too large for a result" in note for note in result.notes)


def test_logs_without_bounds_are_not_judged_unasked(folder: Path) -> None:
    """Anybody who can lay a folder among results could else hold up whoever lists them."""
    for name in ("result.json", "summary.json"):
        for path in folder.rglob(name):
            path.unlink()
    for log in folder.glob("*/round2/*/rank0.out.log"):
        with log.open("ab") as file:
            file.truncate(2**32)  # sparse
    loaded = load_run(folder, by_name_alone)
    assert 2 not in by_round(loaded)
    assert any(
        "round 2 has no result, and more logs than are judged unasked" in note for note in loaded.notes
    )


def test_of_an_endless_journal_the_beginning_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_entries, "MOST_ENTRIES", 100)
    (folder / "journal.jsonl").write_text("{}\n" * 200)
    opened = open_folder(folder)
    assert len(opened.journal) == 100 and opened.journal_gap
    assert f"{folder / 'journal.jsonl'}:101: is more than the 100 entries that are taken" in opened.notes


def test_reading_is_the_inverse_of_writing(run: Run, folder: Path) -> None:
    assert [result.verdict for result in run.results] == [
        Verdict.CONVERGED,
        Verdict.FAILED,
        Verdict.UNREACHABLE,
    ]
    assert load_run(folder, by_name_alone) == run
    assert "rate" in run.results[0].figures


def test_the_summary_alone_is_the_run_too(run: Run, folder: Path) -> None:
    (folder / "journal.jsonl").unlink()
    shutil.rmtree(folder / NAME)
    loaded = load_run(folder, by_name_alone)
    assert replace(loaded, notes=()) == replace(run, results=tuple(map(without_nodes, run.results)))


def test_the_rounds_alone_are_the_results_too(run: Run, folder: Path) -> None:
    for name in ("summary.json", "journal.jsonl", "plan.json"):
        (folder / name).unlink()
    loaded = load_run(folder, by_name_alone)
    assert loaded.results == run.results
    assert (loaded.name, loaded.exit_code, loaded.started) == ("run", None, "")


def test_a_round_without_a_result_is_judged_by_what_there_is(run: Run, folder: Path) -> None:
    """The controller was killed after it had seen the end of the round."""
    (folder / "summary.json").unlink()
    for path in folder.glob("*/*/result.json"):
        path.unlink()
    assert load_run(folder, by_name_alone).results == run.results


def test_a_run_that_was_cut_off_is_shown_as_far_as_it_came(run: Run, folder: Path) -> None:
    (folder / "summary.json").unlink()
    shutil.rmtree(folder / NAME / "round3")
    (folder / NAME / "round2" / "result.json").unlink()
    (folder / NAME / "round2" / "round.json").unlink()
    text = (folder / "journal.jsonl").read_text().splitlines()
    stage = json.dumps({"event": "stage", "case": NAME, "round": 2, "stage": "collect"})
    (folder / "journal.jsonl").write_text("\n".join([*text[:4], stage, '{"event": "round_en']))
    loaded = load_run(folder, by_name_alone)
    assert loaded.results == run.results[:1]
    assert (loaded.exit_code, loaded.uid, loaded.started) == (None, UID, "2026-01-02T03:04:05+00:00")
    notes = "\n".join(loaded.notes)
    assert "journal.jsonl:6: is not JSON, or only a part" in notes
    assert "did not come to its end" in notes
    assert f"case {NAME}, round 2 has no result: it was last seen at the stage collect" in notes
    assert f"case {NAME}, round 3 has no result: it was not begun" in notes


def test_rounds_that_had_converged_before_are_not_missed(folder: Path) -> None:
    plan = json.loads((folder / "plan.json").read_text())
    (folder / "plan.json").write_text(json.dumps({**plan, "done": {NAME: [2]}}))
    (folder / "summary.json").unlink()
    shutil.rmtree(folder / NAME / "round2")
    journal = (folder / "journal.jsonl").read_text().splitlines(keepends=True)
    (folder / "journal.jsonl").write_text("".join(line for line in journal if '"round": 2' not in line))
    assert not any("round 2" in note for note in load_run(folder, by_name_alone).notes)


def test_what_is_missing_of_a_copy_is_named(folder: Path) -> None:
    assert load_run(folder, by_name_alone).notes == ()
    (folder / "plan.json").unlink()
    shutil.rmtree(folder / NAME / "round2")
    notes = "\n".join(load_run(folder, by_name_alone).notes)
    assert "plan.json is not there: which rounds were planned" in notes
    round2 = f"case {NAME}, round 2"
    assert f"{round2}: its folder is not there: {folder / NAME / 'round2'}; what is shown of it" in notes
    (folder / "summary.json").unlink()
    journal = folder / "journal.jsonl"
    journal.write_text(journal.read_text() + '{"event": "run_ended", "exit_code": 1}\n')
    loaded = load_run(folder, by_name_alone)
    notes = "\n".join(loaded.notes)
    assert loaded.exit_code == 1
    assert "summary.json is not there: the preflight is not known" in notes
    assert f"{round2} has no result: " in notes and "its folder is not there" in notes
    journal.unlink()
    assert "journal.jsonl is not there" in "\n".join(load_run(folder, by_name_alone).notes)


def test_a_log_that_is_missing_of_a_copy_is_named(folder: Path) -> None:
    for log in folder.glob("*/*/*_noderank0/rank0.out.log"):
        log.unlink()
    reported, cut_off, lost = (f"case {NAME}, round {number}" for number in (1, 2, 3))
    why = "rank0.out.log is not there: its figures cannot be computed again"
    assert load_run(folder, by_name_alone).notes == (
        f"{reported}: {why}",
        f"{cut_off}: {why}",
        f"{lost}: {why}",
    )
    for number in (2, 3):  # rounds that never had one
        result = folder / NAME / f"round{number}" / "result.json"
        content = json.loads(result.read_text())
        content |= {"facts": {}, "figures": {"round_time": content["figures"]["round_time"]}}
        result.write_text(json.dumps(content))
    (folder / "summary.json").unlink()  # which has them otherwise
    assert load_run(folder, by_name_alone).notes[-1:] == (f"{reported}: {why}",)


def test_a_result_that_was_altered_or_taken_away_is_named(folder: Path) -> None:
    """By who has the folder alone: the summary has each of them, too."""
    path = folder / NAME / "round1" / "result.json"
    content = json.loads(path.read_text())
    content["figures"]["p_train"]["value"] *= 10
    path.write_text(json.dumps(content))
    (note,) = load_run(folder, by_name_alone).notes
    assert "its result.json and in summary.json differ" in note and "--rescore" in note
    path.unlink()
    assert load_run(folder, by_name_alone).notes == (
        f"case {NAME}, round 1: result.json is not there, its figures are those of summary.json",
    )


@pytest.mark.parametrize(
    ("part", "value", "shown"),
    [
        ("verdict", "NOT_CONVERGED", "verdict"),
        ("rules", {"stamp": "open"}, "stamp and rules"),
        ("notes", [], "notes"),
        ("hosts", ["h1", "other"], "hosts"),
        ("kind", "measure", "kind"),
    ],
)
@pytest.mark.parametrize("name", ["result.json", "summary.json"])
def test_whatever_of_a_result_was_altered_is_named(
    name: str, part: str, value: object, shown: str, folder: Path
) -> None:
    path = folder / NAME / "round1" / name if name == "result.json" else folder / name
    content = json.loads(path.read_text())
    record = content if name == "result.json" else content["rounds"][0]
    assert record[part] != value
    record[part] = value
    path.write_text(json.dumps(content))
    (note,) = load_run(folder, by_name_alone).notes
    assert note == (
        f"case {NAME}, round 1: the {shown} in its result.json and in summary.json differ: one was altered; "
        "`show --rescore` judges the logs"
    )


def test_a_verdict_that_both_files_have_otherwise_is_held_against_the_journal(folder: Path) -> None:
    """Its last word of the round: the one before is of an end after which the round was gone on with."""
    result, summary = folder / NAME / "round2" / "result.json", folder / "summary.json"
    own, whole = json.loads(result.read_text()), json.loads(summary.read_text())
    assert own["verdict"] == "FAILED"
    end = {"event": "round_ended", "case": NAME, "round": 2}
    with (folder / "journal.jsonl").open("a") as journal:
        for verdict in ("INTERRUPTED", "FAILED"):
            journal.write(json.dumps({**end, "verdict": verdict}) + "\n")
    assert load_run(folder, by_name_alone).notes == ()
    for record in (own, whole["rounds"][1]):
        record.update(verdict="CONVERGED", failure=None)
    result.write_text(json.dumps(own))
    summary.write_text(json.dumps(whole))
    notes = load_run(folder, by_name_alone).notes
    assert [note.partition(": ")[2].partition(":")[0] for note in notes] == [
        f"CONVERGED in {name}, and FAILED in journal.jsonl" for name in ("result.json", "summary.json")
    ]


def test_a_summary_that_says_what_it_left_out_is_not_altered(run: Run, folder: Path) -> None:
    results = tuple(
        replace(each, facts={}, continued=None, provenance=None, notes=()) for each in run.results
    )
    rules = tuple(replace(each, rules=replace(each.rules, differs={}, hooks=None)) for each in results)
    write_json(folder / "summary.json", replace(run, results=rules, notes=(LEFT_OUT,)).as_dict())
    assert load_run(folder, by_name_alone).notes == (LEFT_OUT,)


def test_a_run_that_goes_on_is_told_from_one_that_was_ended(folder: Path) -> None:
    (folder / "summary.json").unlink()
    assert "the run did not come to its end" in load_run(folder, by_name_alone).notes[0]
    controller = Journal(folder / "journal.jsonl")
    assert load_run(folder, by_name_alone).notes[0] == "the run still goes on"
    controller.close()


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "null",
        "[" * 100_000,
        '{"schema": 4}',
        '{"schema": true}',
        '{"schema": 2, "case": 5}',
        "\0",
        '{"a": ' + "9" * 5000 + "}",
    ],
    ids=lambda content: content[:20],
)
def test_one_bad_round_does_not_lose_the_others(content: str, run: Run, folder: Path) -> None:
    (folder / "summary.json").unlink()
    path = folder / NAME / "round2" / "result.json"
    path.write_text(content)
    path.with_name("round.json").write_text(content)
    loaded = load_run(folder, by_name_alone)
    assert loaded.results == (run.results[0], run.results[2])
    assert any(str(path) in note for note in loaded.notes)


def change(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize(
    "changes",
    [
        {"verdict": "SPLENDID"},
        {"figures": {"x": 5}},
        {"figures": {"x": {"value": "fast", "unit": "s", "window": "w", "source": "s"}}},
        {"hosts": "h1"},
        {"round": "2"},
        {"failure": {"class": "boredom"}},
        {"case": "../../etc"},
        {"round": 3},
    ],
    ids=str,
)
def test_a_result_of_another_form_or_place_is_refused(
    changes: dict[str, Any], run: Run, folder: Path
) -> None:
    path = folder / NAME / "round2" / "result.json"
    change(path, **changes)
    loaded = load_run(folder, by_name_alone)
    first, second, third = run.results
    assert loaded.results == (first, without_nodes(second), third), "it stands in the summary too"
    assert len(loaded.notes) == 1 and str(path) in loaded.notes[0]


def test_numbers_and_texts_that_no_json_should_hold_do_no_harm(folder: Path) -> None:
    path = folder / NAME / "round1" / "result.json"
    text = (
        path.read_text().replace('"value": 100.0', '"value": NaN').replace('"value": 125.0', '"value": 1e999')
    )
    path.write_text(text.replace('"a note"', '"\\ud800 \\u001b[2J"'))
    loaded = load_run(folder, by_name_alone)
    figures = by_round(loaded)[1].figures
    assert figures["p_whole"].value is figures["p_train"].value is None
    shown = run_text(loaded, 80)
    assert "\x1b" not in shown and shown.encode()
    assert json.dumps(loaded.as_dict(), allow_nan=False)


def test_junk_links_and_pipes_in_a_folder_are_passed_over(run: Run, folder: Path) -> None:
    for name in ("round9", "round0", "roundx", "round02"):
        (folder / NAME / name).mkdir()
    (folder / "notes.txt").write_text("mine")
    (folder / "loop").symlink_to(folder)
    (folder / "dangling").symlink_to("/nowhere")
    (folder / NAME / "round7").symlink_to("/dev")
    os.mkfifo(folder / NAME / "round9" / "result.json")
    loaded = load_run(folder, by_name_alone)
    assert loaded.results == run.results
    link, pipe = loaded.notes
    assert "round7: is a link, which is not followed" in link and "round9/result.json: is no file" in pipe


@pytest.mark.parametrize("name", ["plan.json", "journal.jsonl", "summary.json", f"{NAME}/round1/result.json"])
def test_a_file_that_is_a_link_is_not_followed(name: str, folder: Path) -> None:
    """`summary.json -> /proc/kmsg` held `show` for ever."""
    path = folder / name
    path.rename(folder.parent / "elsewhere")
    path.symlink_to(folder.parent / "elsewhere")
    (note,) = (note for note in load_run(folder, by_name_alone).notes if str(path) in note and "link" in note)
    assert note == f"{path}: is no file, but a link, which is not followed"


@pytest.mark.parametrize("name", [NAME, f"{NAME}/round1", f"{NAME}/round1/h1_noderank0"])
def test_a_folder_that_is_a_link_is_not_followed(name: str, folder: Path) -> None:
    (folder / "summary.json").unlink()
    path = folder / name
    path.rename(folder.parent / "elsewhere")
    path.symlink_to(folder.parent / "elsewhere")
    loaded = load_run(folder, by_name_alone)
    assert f"{path}: is a link, which is not followed" in loaded.notes
    assert 1 not in by_round(loaded)


def test_links_to_cases_and_rounds_are_said_and_not_looked_into(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`show` looked into a thousand links to a folder of five thousand rounds: five million looks."""
    for number in range(60):
        (folder / f"c{number}").symlink_to(NAME)
        (folder / NAME / f"round{number + 10}").symlink_to("round1")
    listed: list[str] = []

    def recorded(listing: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda path: listed.append(str(path)) or listing(path)

    for name in ("listdir", "scandir"):
        monkeypatch.setattr(os, name, recorded(getattr(os, name)))
    loaded = load_run(folder, by_name_alone)
    assert listed and not [path for path in listed if Path(path).is_symlink()]
    assert loaded.results == run.results
    assert loaded.notes[-1] == "70 more notes like these"
    assert all("is a link, which is not followed" in note for note in loaded.notes[:-1])


def test_of_very_many_folders_some_are_looked_at_and_that_is_said(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(round_folders, "MOST_FOLDERS", 3)  # the case's, and two rounds of it
    opened = open_folder(folder)
    assert [key.number for key in opened.rounds] == [1, 2]
    assert opened.notes == [f"{folder}: holds more than 3 folders: the rest is not looked at"]
    (folder / "zzz").mkdir()
    monkeypatch.setattr(round_folders, "MOST_FOLDERS", 5)
    assert not open_folder(folder).notes


def test_what_lies_behind_a_link_is_read_for_no_report_and_no_export(folder: Path) -> None:
    """The report drew the curves of the link's target, where `summary.json` held the round."""
    path = folder / NAME / "round1"
    path.rename(folder.parent / "elsewhere")
    path.symlink_to(folder.parent / "elsewhere")
    opened, result = open_folder(folder), by_round(load_run(folder, by_name_alone))[1]
    assert opened.folder_of(result) is None and opened.folder_of(replace(result, round=2))
    view = round_view(result, opened.folder_of(result), opened.cases[NAME], 1000, str)
    assert view["charts"] == [] and view["heat_maps"] == [] and view["large"]
    assert Round(opened, result, None).node_folders() == []


def test_a_journal_that_is_a_link_or_a_pipe_is_held_by_nobody(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/dev/null")
    os.mkfifo(tmp_path / "pipe")
    assert is_held(tmp_path / "link") is is_held(tmp_path / "pipe") is None


def test_a_run_folder_that_is_a_link_is_the_run(run: Run, folder: Path) -> None:
    (folder.parent / "latest").symlink_to(folder)
    assert load_run(folder.parent / "latest", by_name_alone).results == run.results


@pytest.mark.parametrize(
    ("name", "value"), [("case", "../../other"), ("hosts", ["../../../other"]), ("case", "..")]
)
def test_a_result_whose_names_lead_elsewhere_is_not_read(name: str, value: object, folder: Path) -> None:
    path = folder / "summary.json"
    summary = json.loads(path.read_text())
    summary["rounds"][0][name] = value
    path.write_text(json.dumps(summary))
    shutil.rmtree(folder / NAME)
    loaded = load_run(folder, by_name_alone)
    assert f"{path}: rounds[0]: a case or host in it has a name that leads elsewhere" in loaded.notes
    assert [result.round for result in loaded.results] == [2, 3]


def test_a_file_of_very_many_values_does_not_fill_the_memory(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """64 MiB of `{}` took 1.5 GB."""
    monkeypatch.setattr(reading, "MOST_VALUES", 1000)
    path = folder / "plan.json"
    path.write_text(json.dumps({"cases": [{}] * 1000}))
    assert any(
        note.startswith(f"{path}: holds ") and note.endswith(" values, more than the 1000 that are taken")
        for note in load_run(folder, by_name_alone).notes
    )


@pytest.mark.parametrize("name", ["nnodes", "nproc", "repeat"])
@pytest.mark.parametrize("number", [-1, 0, 10**6, pytest.param(10**400, id="no float")])
def test_a_case_of_a_size_that_no_plan_can_have_is_left_out(folder: Path, name: str, number: int) -> None:
    """With -1 its rounds were judged all the same; what no float holds was an error of the judge."""
    path = folder / "plan.json"
    plan = json.loads(path.read_text())
    plan["cases"][0]["settings"][name] = number
    path.write_text(json.dumps(plan))
    loaded = load_run(folder, by_name_alone)
    assert any(note.startswith(f"{path}: cases[0]: settings.{name}: ") for note in loaded.notes), loaded.notes
    assert [result.round for result in loaded.results] == [1, 2, 3]


def test_logs_that_are_pipes_are_not_waited_for(folder: Path) -> None:
    (folder / "summary.json").unlink()
    node = folder / NAME / "round1"
    (node / "result.json").unlink()
    log = node / "h1_noderank0" / "rank0.out.log"
    log.unlink()
    os.mkfifo(log)
    result = by_round(load_run(folder, by_name_alone))[1]
    assert result.verdict is Verdict.INVALID and "cannot be read" in (result.failure or result).message  # type: ignore[union-attr]


@pytest.mark.parametrize("make", [lambda path: None, Path.mkdir, Path.touch, lambda p: p.symlink_to(p)])
def test_what_is_no_run_is_refused(make: Callable[[Path], object], tmp_path: Path) -> None:
    path = tmp_path / "x"
    make(path)
    with pytest.raises(FlagPerfError) as refused:
        load_run(path, by_name_alone)
    assert str(path) in str(refused.value) and "plan.json" in refused.value.remedy


def test_a_copy_elsewhere_reads_the_same(run: Run, folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "elsewhere")
    shutil.rmtree(folder)
    assert load_run(tmp_path / "elsewhere", by_name_alone) == run


@pytest.mark.parametrize(
    ("kind", "verdicts", "code"),
    [
        ("converged", [Verdict.CONVERGED, Verdict.CONVERGED], 0),
        ("not_converged", [Verdict.NOT_CONVERGED], 1),
        ("failed", [Verdict.FAILED], 1),
        ("torn", [Verdict.NOT_CONVERGED], None),
    ],
)
def test_runs_of_schema_1_are_read(kind: str, verdicts: list[Verdict], code: int | None) -> None:
    (path,) = (SCHEMA1 / kind).iterdir()
    loaded = load_run(path, by_name_alone)
    assert loaded.name == path.name and loaded.uid.startswith(path.name)
    assert [result.verdict for result in loaded.results] == verdicts
    assert loaded.exit_code == code
    assert bool(loaded.notes) is (kind == "torn")
    for result in loaded.results:
        assert result.kind == "converge"
        for name, figure in result.figures.items():
            assert figure.better == DEFINITIONS[name].better and figure.definition
    assert "What the figures mean" in run_text(loaded, 80)


@pytest.mark.parametrize(("number", "has_provenance"), [(2, False), (3, True)])
def test_runs_of_later_schemas_are_read_and_score_as_they_did(number: int, has_provenance: bool) -> None:
    (path,) = (SCHEMA1.parent / f"schema{number}").iterdir()
    written = json.loads((path / "summary.json").read_text())
    assert written["schema"] == written["rounds"][0]["schema"] == number
    run = load_run(path, by_name_alone)
    (result,) = run.results
    assert (
        run.notes == () and result.verdict is Verdict.CONVERGED and bool(result.provenance) is has_provenance
    )
    if result.provenance:
        assert result.provenance.harness.commit and result.provenance.versions["torch"]
        assert result.provenance.hosts[0] and "Model name" in result.provenance.hosts[0].cpu
    (again,) = rescore(path, by_name_alone)
    assert again.after and again.after.provenance == result.provenance
    # it was said to be in nats, whatever the case's loss
    assert again.figures().keys() == {"final_loss"} and not again.others()


def test_a_failure_of_schema_1_is_read_with_its_evidence() -> None:
    (path,) = (SCHEMA1 / "failed").iterdir()
    failure = load_run(path, by_name_alone).results[0].failure
    assert isinstance(failure, Failure)
    assert (failure.stage, failure.failure_class) == (Stage.TRAIN, FailureClass.RANK_FAILED)
    assert "training has diverged" in failure.evidence


JSON_FILES = ("plan.json", "summary.json", f"{NAME}/round1/result.json", f"{NAME}/round1/round.json")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_whatever_stands_in_a_file_a_run_is_read_and_shown(data: st.DataObject, folder: Path) -> None:
    """One value somewhere in one file is replaced; what the folder holds besides is read all the same."""
    path = folder / data.draw(st.sampled_from(JSON_FILES))
    before = path.read_text()
    content = at = json.loads(before)
    while True:
        key = data.draw(st.sampled_from(list(at) if isinstance(at, dict) else range(len(at))))
        if isinstance(at[key], (dict, list)) and at[key] and data.draw(st.booleans()):
            at = at[key]
            continue
        at[key] = data.draw(VALUES)
        break
    path.write_text(json.dumps(content))
    try:
        loaded = load_run(folder, by_name_alone)
        assert {2, 3} <= set(by_round(loaded))
        assert run_text(loaded, 80)
        json.dumps(loaded.as_dict(), allow_nan=False)
    finally:
        path.write_text(before)
