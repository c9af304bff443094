"""The index of all runs and `run.py list`: the folders are the truth, whatever state they or the index are in."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks.commands import run_command
from run_benchmarks.history import index as index_module
from run_benchmarks.history.index import Index
from run_benchmarks.history.places import places_in
from run_benchmarks.history.query import Query, Row, condition_of, count, select
from run_benchmarks.journal import Journal
from run_benchmarks.plan.secrets import by_name_alone
from run_benchmarks.results.summary import Run, write_summary
from run_benchmarks.verbs import main
from tests.run_benchmarks.results.made_runs import CASES, make_runs
from tests.run_benchmarks.written_run import SCHEMA1
from utils.errors import FlagPerfError

BERT = CASES[1]
Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    make_runs(folder, 4)
    return folder


@pytest.fixture
def log_path(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    shutil.copytree(model, tmp_path / "result")
    return tmp_path / "result"


@pytest.fixture
def index(log_path: Path) -> Iterator[Index]:
    index = Index(log_path, by_name_alone)
    yield index
    index.close()


def refreshed(index: Index) -> list[int]:
    """Refresh it; how many runs had to be read."""
    counts: list[int] = []
    index.refresh(counts.append)
    return counts


def rows_of(index: Index, *conditions: str, sort: str = "-started", limit: int | None = None) -> list[Row]:
    return select(index, Query(tuple(map(condition_of, conditions)), sort, limit))


def names(rows: list[Row]) -> list[tuple[str, int | None]]:
    return [(row.run, row.round) for row in rows]


def runs_in(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


# ---- the index


def test_a_refresh_reads_what_is_new_or_has_changed_and_drops_what_has_gone(
    index: Index, log_path: Path
) -> None:
    assert refreshed(index) == [4]
    assert refreshed(index) == []
    first, second, third, fourth = runs_in(log_path)
    shutil.rmtree(first)
    result = second / CASES[1] / "round2" / "result.json"
    content = json.loads(result.read_text())
    result.unlink()  # as a run writes one: put in place by renaming
    (second / "partial").write_text(json.dumps({**content, "verdict": "TIMED_OUT"}))
    (second / "partial").rename(result)
    (third / "journal.jsonl").open("a").write("{}\n")
    (log_path / "no run").mkdir()
    assert refreshed(index) == [2]
    rows = rows_of(index, sort="run")
    assert names(rows) == [(run.name, number) for run in (second, third, fourth) for number in (1, 2, 3)]
    assert [row.verdict for row in rows[:3]] == ["CONVERGED", "TIMED_OUT", "UNREACHABLE"]


def test_it_holds_what_the_folder_says(index: Index, log_path: Path) -> None:
    refreshed(index)
    row = rows_of(index, "case ~ BERT", "round = 1")[0]
    summary = json.loads((log_path / row.run / "summary.json").read_text())
    (result, *_) = summary["rounds"]
    assert (row.uid, row.exit_code, row.state) == (summary["uid"], 1, "ended")
    assert (row.case, row.verdict, row.started) == (BERT, "CONVERGED", result["started"])
    assert row.hosts == "h1, h2"
    figures = {
        name: figure["value"] for name, figure in result["figures"].items() if figure["value"] is not None
    }
    assert {name: measured.value for name, measured in row.figures.items()} == figures
    assert row.figures["rate"].unit == "GB/s"
    assert index.path_of(row.key) == log_path / row.run
    assert index.path_of("../../etc") is None


def test_a_run_that_goes_on_is_told_from_one_that_was_ended(index: Index, log_path: Path) -> None:
    run = runs_in(log_path)[0]
    (run / "summary.json").unlink()
    controller = Journal(run / "journal.jsonl")
    refreshed(index)
    assert {row.state for row in rows_of(index, f"run = {run.name}")} == {"goes on"}
    controller.close()  # nothing is written: the kernel lets go of the lock
    assert refreshed(index) == [1]
    assert {row.state for row in rows_of(index, "state != ended")} == {"not ended"}


def test_what_cannot_be_read_is_listed_with_the_reason_and_loses_no_other(
    index: Index, log_path: Path
) -> None:
    torn, foreign, hostile, absurd = runs_in(log_path)
    (torn / "summary.json").write_text('{"run": ')
    shutil.rmtree(torn / CASES[0] / "round2")
    shutil.rmtree(foreign)
    foreign.mkdir()
    (foreign / "notes.txt").write_text("no run, but of its name")
    odd = log_path / "a \x1b[2J <b>run"
    hostile.rename(odd)
    (log_path / "loop").symlink_to(log_path / "loop")
    no_utf8 = log_path / os.fsdecode(b"\xff\xfe")
    shutil.copytree(odd / CASES[0], no_utf8 / CASES[0])
    (no_utf8 / "plan.json").write_text("[" * 100_000)
    summary = json.loads((absurd / "summary.json").read_text())
    summary["rounds"].append({**summary["rounds"][0], "round": 10**30})
    (absurd / "summary.json").write_text(json.dumps({**summary, "exit_code": 10**30}))
    refreshed(index)
    rows = rows_of(index)
    by_run = {row.run: row for row in rows}
    assert by_run[torn.name].state == "not ended" and "summary.json" in by_run[torn.name].notes[0]
    assert by_run[foreign.name].state == "unreadable" and by_run[foreign.name].round is None
    assert by_run[foreign.name].notes == ("is no result folder of a run",)
    assert "no round can have such a number" in by_run[absurd.name].notes[-1]
    assert len(rows) == 2 + 1 + 3 + 3 + 3, "each readable round is there"
    assert {row.run for row in rows} >= {"a \ufffd[2J <b>run", "\ufffd\ufffd"}
    (strange,) = {row.key for row in rows if row.run == "\ufffd\ufffd"}
    assert strange.isascii() and strange.isalnum() and index.path_of(strange) == no_utf8


@pytest.mark.parametrize("damage", ["version", "view", "bytes", "pages", "end"])
def test_an_index_that_is_damaged_or_of_another_form_is_made_anew(damage: str, log_path: Path) -> None:
    index = Index(log_path, by_name_alone)
    refreshed(index)
    index.close()
    assert index.file
    whole = index.file.read_bytes()
    if damage in ("version", "view"):
        connection = sqlite3.connect(index.file)
        connection.executescript("DROP VIEW listed" if damage == "view" else "PRAGMA user_version = 77")
        connection.close()
    else:
        beginning = {"bytes": b"no index at all", "pages": whole[:8192], "end": whole[:6000]}[damage]
        index.file.write_bytes(beginning + b"\xff" * (len(whole) - 8192) * (damage == "pages"))
    again = Index(log_path, by_name_alone)
    assert refreshed(again) == [4] and count(again, Query()) == 12
    again.close()
    assert oct(index.file.parent.stat().st_mode)[-3:] == "700"


def test_an_index_that_goes_away_or_is_made_anew_is_opened_again(index: Index, log_path: Path) -> None:
    refreshed(index)
    assert index.file
    other = Index(log_path, by_name_alone, rebuild=True)
    assert refreshed(index) == [4] and refreshed(other) == [], "each is read anew, by whoever comes first"
    assert listed(log_path, "--rebuild") == 0 and count(index, Query()) == 12
    index.file.unlink()
    shutil.rmtree(runs_in(log_path)[0])
    assert refreshed(index) == [3] and count(index, Query()) == 9
    assert refreshed(other) == [] and count(other, Query()) == 9
    other.close()


def test_two_that_refresh_at_once_do_not_disturb_each_other(log_path: Path) -> None:
    first, second = Index(log_path, by_name_alone), Index(log_path, by_name_alone)
    assert refreshed(first) == [4] and refreshed(second) == []
    shutil.rmtree(runs_in(log_path)[0])
    refreshed(second)
    assert count(first, Query()) == 9
    first.close()
    second.close()


def test_without_a_cache_it_is_kept_in_memory(
    log_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(index_module, "_cache_file", lambda path: log_path / "gone" / "x.sqlite")
    assert listed(log_path, "--verdict", "converged") == 0
    shown = capsys.readouterr()
    assert shown.out.count("CONVERGED") == 4 and "every run is read anew each time: the cache" in shown.err
    assert not (log_path / "gone").exists()


def _folder_anothers(cache: Path) -> None:
    os.chown(cache / "flagperf", 65534, 65534)


def _file_anothers(cache: Path) -> None:
    os.chown(next((cache / "flagperf").iterdir()), 65534, 65534)


def _cache_anothers(cache: Path) -> None:
    os.chown(cache, 65534, 65534)


def _link_of_anothers(cache: Path) -> None:
    cache.rename(cache.parent / "own")
    cache.symlink_to(cache.parent / "own")
    os.chown(cache, 65534, 65534, follow_symlinks=False)


def _folder_open(cache: Path) -> None:
    (cache / "flagperf").chmod(0o770)


def _file_open(cache: Path) -> None:
    next((cache / "flagperf").iterdir()).chmod(0o666)


def _folder_elsewhere(cache: Path) -> None:
    (cache / "flagperf").rename(cache / "elsewhere")
    (cache / "flagperf").symlink_to(cache / "elsewhere")


def _file_elsewhere(cache: Path) -> None:
    file = next((cache / "flagperf").iterdir())
    file.rename(cache / "elsewhere")
    file.symlink_to(cache / "elsewhere")


def _second_name(cache: Path) -> None:
    (cache / "elsewhere").hardlink_to(next((cache / "flagperf").iterdir()))


OPEN = [_folder_open, _file_open, _folder_elsewhere, _file_elsewhere, _second_name]
ANOTHERS = [_folder_anothers, _file_anothers, _cache_anothers, _link_of_anothers]


@pytest.mark.parametrize("plant", [*OPEN, *(ANOTHERS if os.geteuid() == 0 else [])])
def test_an_index_that_another_user_may_have_made_is_neither_believed_nor_written(
    plant: Callable[[Path], None], index: Index, log_path: Path, capsys: Capture
) -> None:
    refreshed(index)
    assert index.file
    with index.use() as connection, connection:
        connection.execute("UPDATE rounds SET verdict = 'FORGED'")
    shutil.rmtree(runs_in(log_path)[0])  # a refresh would write it down
    before = index.file.read_bytes()
    plant(log_path.parent / "cache")
    assert listed(log_path) == 0
    shown = capsys.readouterr()
    assert "FORGED" not in shown.out and shown.out.count("CONVERGED") == 3
    assert shown.err.count("every run is read anew each time") == 1 and str(log_path.parent) in shown.err
    assert index.file.read_bytes() == before


@pytest.mark.skipif(os.geteuid() != 0, reason="to give a folder away takes root")
def test_nothing_is_made_in_the_cache_of_another_user(log_path: Path) -> None:
    cache = log_path.parent / "cache"
    cache.mkdir()
    os.chown(cache, 65534, 65534)
    again = Index(log_path, by_name_alone)
    again.close()
    assert again.file is None and not list(cache.iterdir())


def test_links_in_a_run_cost_no_look_into_what_they_lead_to(log_path: Path) -> None:
    """A thousand links to a folder of five thousand rounds held `list` and `serve` for minutes."""
    run, elsewhere = runs_in(log_path)[0], log_path.parent / "elsewhere"
    (elsewhere / "round1").mkdir(parents=True)
    places = {place.path: place.mark for place in places_in(log_path)}
    next(run.glob("*/round1")).with_name("round9").symlink_to(elsewhere)
    (run / "link").symlink_to(elsewhere)
    assert {place.path: place.mark for place in places_in(log_path)} != places, "the case's folder changed"
    marks = {place.mark for place in places_in(log_path)}
    os.utime(elsewhere / "round1", (1, 1))
    os.utime(elsewhere, (1, 1))
    assert {place.mark for place in places_in(log_path)} == marks


# ---- what is asked of it


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        (["p_train > 127"], 6),  # 125 samples/s, and 1 % more with each run, in its three rounds
        (["p_train>=1e2", "round == 2"], 4),
        (["verdict = CONVERGED"], 4),
        (["verdict != 'CONVERGED'", "case ~ bert"], 4),
        (["hosts ~ H2", "started >= 2026-01-04"], 6),
        (["nothing' OR 1=1 --"], None),
        (["run = ' OR 1=1 --"], 0),
        (["exit_code < 1"], 0),
        (["case ~ \udcff"], 0),  # a byte of the command line that is no text
    ],
)
def test_conditions(conditions: list[str], expected: int | None, index: Index) -> None:
    refreshed(index)
    if expected is None:
        with pytest.raises(FlagPerfError, match="is no condition"):
            rows_of(index, *conditions)
    else:
        rows = rows_of(index, *conditions)
        assert len(rows) == expected == count(index, Query(tuple(map(condition_of, conditions))))


@pytest.mark.parametrize(
    ("conditions", "sort", "message"),
    [
        (["p_trian > 1"], "run", "did you mean p_train?"),
        (["p_train > fast"], "run", "'fast' is no number"),
        (["p_train ~ 1"], "run", "p_train is a number"),
        (["case > 1"], "run", "case is a text"),
        (["started > yesterday"], "run", "'yesterday' is no time"),
        (["p_train > 1"] * 21, "run", "21 conditions are more than 20"),
        ([], "-acn", "did you mean acc?"),
    ],
)
def test_what_makes_no_sense_is_refused_with_what_would(
    conditions: list[str], sort: str, message: str, index: Index
) -> None:
    refreshed(index)
    with pytest.raises(FlagPerfError) as refused:
        rows_of(index, *conditions, sort=sort)
    assert message in str(refused.value) and refused.value.remedy


def test_rows_without_a_value_come_last_whichever_way_they_are_sorted(index: Index, log_path: Path) -> None:
    torn = next((SCHEMA1 / "torn").iterdir())
    shutil.copytree(torn, log_path / torn.name)
    refreshed(index)
    for sort in ("rate", "-rate"):
        assert rows_of(index, sort=sort)[-1].run == torn.name
    values = [row.figures["rate"].value for row in rows_of(index, sort="-rate", limit=12)]
    assert values == sorted(values, reverse=True) and len(values) == 12


# ---- the verb


def listed(log_path: Path, *words: str) -> int:
    return main(["list", "--log-path", str(log_path), *words])


@pytest.mark.parametrize("limit", ["9223372036854775808", "1000000001", "9" * 5000, "٣", "-1", "1_0", ""])
def test_a_limit_that_is_no_number_of_rows_is_refused(limit: str, capsys: Capture, tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        listed(tmp_path, f"--limit={limit}")
    assert ended.value.code == 2 and "no whole number from 0 to 1000000000" in capsys.readouterr().err


def test_the_table(log_path: Path, capsys: Capture) -> None:
    run = runs_in(log_path)[-1]
    (run / "summary.json").write_text("{")
    assert listed(log_path, "--limit", "4") == 0
    shown = capsys.readouterr()
    head, first, *_ = shown.out.splitlines()
    assert head.split("  ")[0] == "run" and "p_train /s" in head and "energy J" not in head
    assert first.startswith(f"{run.name}  {BERT}  1      CONVERGED") and "129" in first
    assert f"- {run.name}: " in shown.out and "summary.json: is not JSON" in shown.out
    assert "4 of 12 rounds; --limit 0 gives all" in shown.err
    assert listed(log_path, "--case", "bert", "--sort=-p_train", "--columns", "run, rate,p_train") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["run", "rate", "GB/s", "p_train", "/s"] and len(lines) == 1 + 6 + 1
    assert lines[1].split() == [run.name, "2.58", "129"]


def test_values_of_other_units_are_told_apart(log_path: Path, capsys: Capture) -> None:
    result = runs_in(log_path)[-1] / BERT / "round1" / "result.json"
    content = json.loads(result.read_text())
    content["figures"]["rate"] |= {"value": 2.0, "unit": "MB/s"}
    (log_path / "new").write_text(json.dumps(content))
    (log_path / "new").rename(result)
    assert listed(log_path, "--columns", "rate", "--sort", "rate") == 0
    head, *values = [line.split() for line in capsys.readouterr().out.splitlines()[:13]]
    assert (head, values[-1], {unit for _, unit in values[:-1]}) == (["rate"], ["2", "MB/s"], {"GB/s"})
    assert listed(log_path, "--where", "rate > 1.9", "--json") == 2
    refused = capsys.readouterr().err
    assert "not measured in one unit" in refused and '"rate > 1.9 GB/s" or "rate > 1.9 MB/s"' in refused
    assert listed(log_path, "--where", "rate > 1 kB/s") == 2
    assert "kB/s is not what it is measured in" in capsys.readouterr().err
    assert listed(log_path, "--where", "round > 1 kB/s") == 2
    for conditions, there in (
        (("rate > 1.9 MB/s",), 1),
        (("rate > 1.9 GB/s",), 11),
        (("rate > 1.9", "round > 1"), 8),
    ):
        words = [word for condition in conditions for word in ("--where", condition)]
        assert listed(log_path, "--json", *words) == 0
        assert len(json.loads(capsys.readouterr().out)["rounds"]) == there


def test_a_value_that_is_marked_is_explained(log_path: Path, capsys: Capture) -> None:
    result = runs_in(log_path)[-1] / BERT / "round1" / "result.json"
    content = json.loads(result.read_text())
    content["figures"]["acc"] |= {"caveat": "more than\n- it can be", "unit": "1\n"}
    (log_path / "new").write_text(json.dumps(content))
    (log_path / "new").rename(result)
    assert listed(log_path, "--limit", "2", "--columns", "run,acc") == 0
    out = capsys.readouterr().out
    assert "0.3399* 1\n" in out and "0.3399 mlm_accuracy\n" in out and "- * acc: more than - it can be" in out


def test_a_round_that_was_run_again_says_why(log_path: Path, capsys: Capture) -> None:
    assert main(["list", "--log-path", str(log_path)]) == 0
    assert "again" not in capsys.readouterr().out
    attempt = {
        "folder": "round1.attempt1",
        "verdict": "FAILED",
        "class": "engine_failed",
        "host": "h2",
        "hosts": [],
    }

    def again(number: int, result: dict[str, Any]) -> None:
        result["attempts"] = [attempt, attempt] if number == 0 and result["round"] == 1 else []

    shutil.rmtree(log_path)
    make_runs(log_path, 2, again)
    assert main(["list", "--log-path", str(log_path)]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert "again" in head and sum("engine_failed on h2; engine_failed on h2" in line for line in lines) == 1
    assert main(["list", "--log-path", str(log_path), "--where", "again ~ engine", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rounds"]
    assert row["again"] == "engine_failed on h2; engine_failed on h2"


def test_what_is_of_a_part_of_a_training_is_marked(log_path: Path, capsys: Capture) -> None:
    result = runs_in(log_path)[-1] / BERT / "round1" / "result.json"
    content = json.loads(result.read_text())
    (log_path / "new").write_text(json.dumps({**content, "continued": {"step": 5, "run": "earlier"}}))
    (log_path / "new").rename(result)
    assert listed(log_path, "--limit", "2", "--columns", "run,p_train,acc") == 0
    out = capsys.readouterr().out
    assert (
        "129*        0.3399\n" in out
        and "- * p_train: the round was continued: this is of its last part only" in out
    )


def test_a_column_of_comparisons_alone_is_refused_with_those_that_there_are(
    log_path: Path, capsys: Capture
) -> None:
    assert listed(log_path, "--columns", "p_train_per_chip") == 2
    error = capsys.readouterr().err
    assert "'p_train_per_chip'; it is of `compare` alone" in error and "nearest first: p_train, " in error


def test_the_largest_first_is_asked_for_with_a_sign_that_is_no_options(capsys: Capture) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["list", "--sort", "-p_train"])
    assert ended.value.code == 2 and "--sort=-VALUE" in capsys.readouterr().err


def test_a_run_that_was_refused_says_once_why_and_where_more_is(log_path: Path, capsys: Capture) -> None:
    notes = ("the preflight failed: n1: engine: it does not answer", "no round was begun")
    folder = log_path / "run20270102030405"
    folder.mkdir()
    write_summary(folder, Run(folder.name, "", "2027-01-02T03:04:05+00:00", 3, (), {}, notes))
    assert listed(log_path, "--limit", "1") == 0
    out = capsys.readouterr().out
    why = f"exit code 3, a host is not healthy (more: {run_command('show', str(folder))}); {'; '.join(notes)}"
    assert f"- {folder.name}: {why}; plan.json is not there" in out


def test_json_has_everything(log_path: Path, capsys: Capture) -> None:
    assert listed(log_path, "--json", "--verdict", "FAILED", "--since", "2026-01-05", "--rebuild") == 0
    content: dict[str, Any] = json.loads(capsys.readouterr().out)
    (row,) = content["rounds"]
    assert content["folder"] == str(log_path)
    assert (row["run"], row["verdict"], row["rules"]) == (runs_in(log_path)[-1].name, "FAILED", None)
    assert row["figures"]["p_train"] == {
        "value": pytest.approx(128.75),
        "unit": "samples/s",
        "caveat": "",
        "scope": "",
    }


def test_where_there_is_nothing_to_list(log_path: Path, tmp_path: Path, capsys: Capture) -> None:
    assert listed(log_path, "--verdict", "INVALID") == 0
    assert "no round of the runs in" in capsys.readouterr().out
    (tmp_path / "empty").mkdir()
    assert listed(tmp_path / "empty") == 0
    assert "there is no run in" in capsys.readouterr().out
    for path, remedy in ((tmp_path / "nowhere", "--log-path"), (runs_in(log_path)[0], str(log_path))):
        assert listed(path) == 2
        assert remedy in capsys.readouterr().err
    assert listed(log_path, "--columns", "run,rat") == 2
    assert "did you mean rate?" in capsys.readouterr().err
    assert listed(log_path, "--where", "p_train") == 2
    assert '"p_train > 100"' in capsys.readouterr().err
