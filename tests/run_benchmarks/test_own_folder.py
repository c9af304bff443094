"""Where verbs write beside what they read: not into a folder that another user may change meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from run_benchmarks import journal, own_folder, verbs
from run_benchmarks.interruption import REQUEST
from run_benchmarks.names import RunId
from run_benchmarks.own_folder import check_place, make_run_folder
from tests.run_benchmarks.written_run import write_run
from utils.errors import FlagPerfError

CODE = Path(__file__).parent


def _anothers(run: Path) -> None:
    os.chown(run, 65534, 65534)


def _open_to_all(run: Path) -> None:
    run.chmod(0o777)


def _may_be_renamed(run: Path) -> None:
    run.parent.chmod(0o777)


def _in_anothers(run: Path) -> None:
    os.chown(run.parent, 65534, 65534)


PLACES = [_open_to_all, _may_be_renamed, *([_anothers, _in_anothers] if os.geteuid() == 0 else [])]


@pytest.mark.parametrize("give_away", PLACES)
@pytest.mark.parametrize(("verb", "output"), [("report", "page.html"), ("export", "run.tar.gz")])
def test_nothing_is_written_where_others_may_put_a_link_unless_it_is_named(
    verb: str,
    output: str,
    give_away: Callable[[Path], None],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = tmp_path / "results" / "run20260102030405"
    write_run(run)
    give_away(run)
    before = set(run.parent.rglob("*"))
    assert verbs.main([verb, str(run)]) == 2
    shown = capsys.readouterr().err
    assert str(run.parent) in shown and ("--output" in shown or "chmod o-w" in shown)
    assert set(run.parent.rglob("*")) == before
    assert verbs.main([verb, str(run), "--output", str(tmp_path / output)]) == 0
    assert (tmp_path / output).is_file() and set(run.parent.rglob("*")) == before


@pytest.mark.parametrize("replaced", [None, "run20260102030405", "."])
def test_no_other_run_is_asked_to_stop_by_a_link(
    replaced: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Replaced, the run's folder or that which holds it, when its controller has been seen to live."""
    strangers, own = (tmp_path / name / "run20260102030405" for name in ("strangers", "own"))
    for folder in (strangers, own):
        folder.mkdir(parents=True)
        (folder / "journal.jsonl").write_text('{"event": "run_started"}\n')
    answers = [True, False]

    def lives(_: Path) -> bool:  # fake: a controller that has ended when it is asked for again
        if replaced and len(answers) == 2:
            place = (strangers.parent / replaced).absolute()
            place.rename(tmp_path / "as it was")
            place.symlink_to((own.parent / replaced).absolute())
        return answers.pop(0)

    monkeypatch.setattr(journal, "is_held", lives)
    assert verbs.main(["stop", str(strangers)]) == 2
    shown = capsys.readouterr()
    asked = [path for path in tmp_path.rglob(REQUEST) if not path.parent.is_symlink()]
    assert asked == ([] if replaced else [strangers / REQUEST])
    assert ("cannot be asked to stop" in shown.err) == bool(replaced)


@pytest.mark.skipif(os.geteuid() != 0, reason="gives folders away, which only root can")
@pytest.mark.parametrize(("mode", "owner"), [(0o777, 0), (0o775, 0), (0o755, 65534)])
@pytest.mark.parametrize("there", ["", "results/"])
def test_a_run_begins_only_where_nobody_else_can_put_a_link(
    mode: int, owner: int, there: str, tmp_path: Path
) -> None:
    """What a run wrote went through links of another user into folders of root's own, and a result was swapped."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    check_place(folder, "x", CODE)  # as /tmp: what lies there is renamed by its owner alone
    check_place(folder / "run" / "deeper", "x", CODE)
    path = folder / there
    path.mkdir(exist_ok=True)
    os.chown(folder, owner, 100 if mode == 0o775 else 0)
    folder.chmod(mode)
    with pytest.raises(FlagPerfError) as error:
        check_place(path, "give another folder", CODE)
    assert error.value.where == str(folder) and "give another folder" in error.value.remedy
    check_place(path, "x", folder)  # whoever may change the code that runs need not change its results


@pytest.mark.skipif(os.geteuid() != 0, reason="gives folders away, which only root can")
def test_a_log_folder_that_another_user_has_made_since_the_check_is_refused(tmp_path: Path) -> None:
    """In a folder like /tmp: it was there in time for the run, and a link stood in the run folder's place next."""
    folder = tmp_path / "results"
    folder.mkdir()
    os.chown(folder, 65534, 65534)
    with pytest.raises(FlagPerfError, match="belongs to the user 65534") as error:
        make_run_folder(folder, CODE)
    assert error.value.where == str(folder)


def test_names_that_others_have_taken_are_not_waited_for_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_folder, "new_run_id", lambda _: RunId("run1", "run1-0", "1970"))
    monkeypatch.setattr(own_folder, "MOST_NAMES", 2)
    (tmp_path / "run1").mkdir()
    with pytest.raises(FlagPerfError, match="are there already") as error:
        make_run_folder(tmp_path, CODE)
    assert error.value.where == str(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="gives folders away, which only root can")
def test_root_writes_into_a_checkout_of_a_user_and_beside_it(tmp_path: Path) -> None:
    """As with sudo; that user's own group may write there, as many systems have it."""
    code = tmp_path / "home" / "checkout"
    code.mkdir(parents=True)
    for folder in (code.parent, code):
        os.chown(folder, 65534, 65534)
        folder.chmod(0o775)
    check_place(code / "result", "x", code)
    check_place(code.parent / "result", "x", code)
