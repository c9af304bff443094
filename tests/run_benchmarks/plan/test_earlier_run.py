"""What the controller's own result folder tells of the run that another one goes on with."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks.plan.as_dict import plain
from run_benchmarks.plan.earlier_run import EarlierRun, find_earlier
from run_benchmarks.reading import LARGEST_BYTES
from tests.run_benchmarks.builders import make_case

NAME, UID = "run20260102030405", "run20260102030405-abcdef"
CASE = replace(make_case(), settings=replace(make_case().settings, repeat=3))
KEY = CASE.settings.name
CODE = Path(__file__).parent


@pytest.fixture
def result(tmp_path: Path) -> Path:
    """The result folder of a run that was cut off in its second round."""
    folder = tmp_path / "result" / NAME
    folder.mkdir(parents=True)
    (folder / "journal.jsonl").write_text(json.dumps({"event": "run_started", "uid": UID}) + "\n{cut")
    plan(folder)
    write(folder, 1, "CONVERGED")
    write(folder, 2, "FAILED")
    return folder


def plan(folder: Path, **more: Any) -> None:
    case = {"settings": plain(CASE.settings), "parameters": dict(CASE.parameters)}
    (folder / "plan.json").write_text(json.dumps({"cases": [case], **more}))


def write(folder: Path, number: int, verdict: str) -> None:
    path = folder / KEY / f"round{number}" / "result.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"verdict": verdict}))


@pytest.mark.parametrize("given", [NAME, UID, f"/results/{NAME}/"])
def test_its_uid_leads_to_its_checkpoints(result: Path, given: str) -> None:
    assert find_earlier(given, result.parent, [CASE], CODE) == EarlierRun(given, UID, {KEY: (1,)})


def test_a_round_that_was_measured_is_done(result: Path) -> None:
    write(result, 3, "MEASURED")
    assert find_earlier(NAME, result.parent, [CASE], CODE).done == {KEY: (1, 3)}


def test_a_journal_of_any_length_tells_of_the_rounds_that_are_done(result: Path) -> None:
    """Of many rounds of many nodes it has hundreds of megabytes."""
    os.truncate(result / "journal.jsonl", LARGEST_BYTES + 1)
    assert find_earlier(NAME, result.parent, [CASE], CODE) == EarlierRun(NAME, UID, {KEY: (1,)})


def test_it_may_lie_elsewhere(result: Path, tmp_path: Path) -> None:
    assert find_earlier(str(result), tmp_path / "other", [CASE], CODE).uid == UID


@pytest.mark.parametrize("given", ["run20250101000000", f"{NAME}-123456"])
def test_one_that_another_controller_ran_is_taken_by_its_word(result: Path, given: str) -> None:
    """Also where this controller started one in the same second."""
    assert find_earlier(given, result.parent, [CASE], CODE) == EarlierRun(given, given)


def test_a_case_with_other_parameters_is_not_done(result: Path) -> None:
    case = replace(CASE, parameters={"target": 0.4})
    assert find_earlier(NAME, result.parent, [case], CODE).done == {}


@pytest.mark.parametrize("other", [{"vendor": "other"}, {"data_dir_host": "/other"}], ids=str)
def test_a_case_of_another_vendor_or_with_other_data_is_not_done(result: Path, other: dict[str, str]) -> None:
    case = replace(CASE, settings=replace(CASE.settings, **other))  # type: ignore[arg-type]
    assert find_earlier(NAME, result.parent, [case], CODE).done == {}


@pytest.mark.parametrize("name", [[KEY], {}, None, 5], ids=str)
def test_a_plan_whose_case_has_no_name_tells_of_no_round(result: Path, name: object) -> None:
    case = {"settings": {"name": name}, "parameters": dict(CASE.parameters)}
    (result / "plan.json").write_text(json.dumps({"cases": [case]}))
    assert find_earlier(NAME, result.parent, [CASE], CODE) == EarlierRun(NAME, UID)


def test_what_runs_before_it_had_done_counts_too(result: Path) -> None:
    plan(result, done={KEY: [3]})
    assert find_earlier(NAME, result.parent, [CASE], CODE).done == {KEY: (1, 3)}


@pytest.mark.parametrize("given", [NAME, UID])
def test_a_folder_of_its_name_where_the_user_happens_to_be_is_not_asked_first(
    given: str, result: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(result, tmp_path / given)
    write(tmp_path / given, 3, "CONVERGED")
    monkeypatch.chdir(tmp_path)
    assert find_earlier(given, result.parent, [CASE], CODE).done == {KEY: (1,)}
    assert find_earlier(f"./{given}", result.parent, [CASE], CODE).done == {KEY: (1, 3)}


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files away, which only root can")
@pytest.mark.parametrize("part", ["", "journal.jsonl", "plan.json", KEY, f"{KEY}/round1/result.json"])
def test_what_another_user_may_have_written_is_not_believed(part: str, result: Path) -> None:
    os.chown(result / part, 65534, 65534)
    earlier = find_earlier(NAME, result.parent, [CASE], CODE)
    assert not earlier.done and earlier.doubt is not None
    assert earlier.doubt.where == str(result / part) and "belongs to the user 65534" in earlier.doubt.message
    assert find_earlier(NAME, result.parent, [CASE], result.parent).done == {KEY: (1,)}, "as its code is"


def test_where_everybody_may_write_nothing_is_believed(result: Path) -> None:
    (result / KEY / "round1").chmod(0o777)
    assert find_earlier(NAME, result.parent, [CASE], CODE).doubt is not None


def test_no_run_was_named(tmp_path: Path) -> None:
    assert find_earlier("", tmp_path, [CASE], CODE) == EarlierRun()
