"""How far a run came, by its folder: what is done, what is taken up, what begins anew."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks.journal import Journal
from run_benchmarks.names import JOURNAL, RUN_LOG
from run_benchmarks.own_folder import check_own
from run_benchmarks.plan.secrets import NO_SECRETS
from run_benchmarks.results.folder import RoundKey, RunFolder
from run_benchmarks.results.planned import planned
from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.resumption import Resumption, RoundSoFar, new_run, read_resumption
from tests.run_benchmarks.builders import make_case, observed
from utils.errors import FlagPerfError
from utils.records import Failure, FailureClass, Stage, Verdict

NAME = make_case(["h1"]).settings.name
KEY = RoundKey(NAME, 1)
OF_ROUND = {"case": NAME, "round": 1}
START = {
    "run": "run20260102030405",
    "uid": "run20260102030405-abcdef",
    "started": "2026-01-02T03:04:05+00:00",
}
LOST = Failure(Verdict.UNREACHABLE, Stage.TRAIN, FailureClass.HOST_UNREACHABLE, "h1", "it is gone")


def taken_up(folder: Path, *events: tuple[str, dict[str, Any]]) -> Resumption:
    """What is read of a run with these lines in its journal; its first round, if it has a result, has failed."""
    (folder / "plan.json").write_text(json.dumps({"cases": []}))
    journal = Journal(folder / JOURNAL)
    journal.write("run_started", **START)
    for event, facts in events:
        journal.write(event, **facts)
    try:
        return read_resumption(folder, journal, NO_SECRETS)
    finally:
        journal.close()


@pytest.fixture
def failed(tmp_path: Path) -> RoundResult:
    """The result of the first round."""
    result = RoundResult(
        **OF_ROUND, started="", hosts=("h1",), failure=LOST, verdict=Verdict.UNREACHABLE, figures={}
    )
    (tmp_path / NAME / "round1").mkdir(parents=True)
    (tmp_path / NAME / "round1" / "result.json").write_text(json.dumps(result.as_dict()))
    return result


@pytest.mark.parametrize("roles", [(), ("controller", "worker")])
def test_a_new_run_goes_on_from_what_a_search_has_kept(roles: tuple[str, ...], tmp_path: Path) -> None:
    case = planned(replace(make_case(["h1"]), roles=roles))
    folder = RunFolder(tmp_path / "run1", plan={"run": {"checkpoint_path": "/ck"}}, cases={NAME: case})
    assert ("--continue-from run1" in new_run(folder, ())) == bool(roles)


def test_an_attempt_that_was_to_be_followed_by_another_is_no_end(tmp_path: Path, failed: RoundResult) -> None:
    so_far = taken_up(tmp_path, ("round_started", OF_ROUND), ("attempt_ended", OF_ROUND))
    assert so_far.unfinished == {KEY: RoundSoFar(KEY, "acquire", attempt=failed)}
    assert not so_far.ended and not so_far.results and not so_far.is_attached


def test_a_result_that_was_written_is_the_end_of_its_round(tmp_path: Path, failed: RoundResult) -> None:
    so_far = taken_up(tmp_path, ("round_started", OF_ROUND))
    assert not so_far.unfinished and so_far.results == (failed,) and KEY in so_far.ended


def test_rounds_that_a_full_disk_kept_from_ending_are_all_taken_up(tmp_path: Path) -> None:
    later = {**OF_ROUND, "round": 2}
    entrance = {"stage": "collect", "seen": observed(make_case(["h1"])).as_dict()}
    so_far = taken_up(
        tmp_path,
        ("round_started", OF_ROUND),
        ("stage", {**OF_ROUND, **entrance}),
        ("round_started", later),
        ("stage", {**later, "stage": "deploy"}),
    )
    assert not so_far.ended and so_far.is_attached
    first, second = (so_far.unfinished[RoundKey(KEY.case, number)] for number in (1, 2))
    assert first.seen and first.entered is Stage.COLLECT
    assert (second.seen, second.stage) == (None, "deploy")


def test_of_an_attempt_that_was_set_aside_nothing_is_in_the_way(tmp_path: Path) -> None:
    again = (("round_started", OF_ROUND), ("attempt_ended", OF_ROUND)) * 2
    so_far = taken_up(tmp_path, *again[:3])
    assert so_far.unfinished == {KEY: RoundSoFar(KEY, "acquire")}


def test_a_journal_of_many_attempts_is_read_in_one_go(tmp_path: Path) -> None:
    """A stranger's journal of 9 MB took two hours: each line was counted among all others."""
    other = {"case": "other", "round": 1}
    lines = [json.dumps({"event": "attempt_ended", **OF_ROUND, "round": n}) + "\n" for n in range(2, 40_000)]
    (tmp_path / JOURNAL).write_text("".join(lines))
    so_far = taken_up(tmp_path, ("round_started", other), ("stage", {**other, "stage": "train"}))
    assert so_far.unfinished == {RoundKey("other", 1): RoundSoFar(RoundKey("other", 1), "train")}


def test_a_run_whose_journal_hides_something_is_not_taken_up(tmp_path: Path) -> None:
    """What was begun and not read would be killed and begun anew."""
    (tmp_path / JOURNAL).write_text('{"event": "ke{"event": "kept"}\n')
    with pytest.raises(FlagPerfError) as caught:
        taken_up(tmp_path, ("round_started", OF_ROUND))
    assert caught.value.message.startswith("not all of the run's journal can be read: is not JSON")
    assert caught.value.where == f"{tmp_path / JOURNAL}:1" and "take out of it" in caught.value.remedy


def _link(run: Path) -> None:
    (run / RUN_LOG).symlink_to(run.parent / "a file of root's")


def _second_name(run: Path) -> None:
    (run.parent / "a file of root's").write_text("")
    (run / RUN_LOG).hardlink_to(run.parent / "a file of root's")


def _pipe(run: Path) -> None:
    os.mkfifo(run / RUN_LOG)


def _case_elsewhere(run: Path) -> None:
    (run.parent / "another run").mkdir()
    (run / NAME).symlink_to(run.parent / "another run")


def _round_elsewhere(run: Path) -> None:
    (run / NAME).mkdir()
    (run / NAME / "round1").symlink_to(run.parent)


def _anothers(run: Path) -> None:
    os.chown(run / JOURNAL, 65534, 65534)


def _open_to_all(run: Path) -> None:
    run.chmod(0o777)


def _may_be_renamed(run: Path) -> None:
    run.parent.chmod(0o777)


PLANTED = [
    *(_link, _second_name, _pipe, _case_elsewhere, _round_elsewhere),
    *(_open_to_all, _may_be_renamed),
    *([_anothers] if os.geteuid() == 0 else []),
]


@pytest.mark.parametrize("plant", PLANTED)
def test_a_folder_that_somebody_else_may_have_made_is_not_written_to(
    plant: Callable[[Path], None], tmp_path: Path
) -> None:
    run = tmp_path / "results" / "run20260102030405"
    run.mkdir(parents=True)
    (run / JOURNAL).write_text("")
    check_own(run)
    plant(run)
    with pytest.raises(FlagPerfError) as refused:
        check_own(run)
    assert refused.value.remedy and refused.value.where


def test_a_link_is_refused_before_anything_is_looked_for_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand links to a folder of five thousand rounds were five million looks."""
    run, listed, scandir = tmp_path / "run20260102030405", [], os.scandir

    def recorded(path: Any) -> Any:
        listed.append(str(path))
        return scandir(path)

    (run / "a").mkdir(parents=True)
    (run / "b").symlink_to("a")
    monkeypatch.setattr(os, "scandir", recorded)
    with pytest.raises(FlagPerfError, match="is a link"):
        check_own(run)
    assert str(run) in listed and str(run / "b") not in listed
