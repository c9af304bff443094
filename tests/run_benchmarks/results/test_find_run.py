"""Which run a user means."""

from __future__ import annotations

from pathlib import Path

import pytest

from run_benchmarks.journal import Journal
from run_benchmarks.results.find import find_open_run, find_run
from utils.errors import FlagPerfError

OLD, NEW = "run20260102030405", "run20260203040506"


@pytest.fixture
def log_path(tmp_path: Path) -> Path:
    for name in (NEW, OLD, "backup", "run2026"):
        (tmp_path / "result" / name).mkdir(parents=True)
    (tmp_path / "result" / NEW / "journal.jsonl").write_text(f'{{"uid": "{NEW}-0a1b2c"}}\n')
    (tmp_path / "result" / "run20270101000000").touch()  # no folder
    return tmp_path / "result"


@pytest.mark.parametrize("given", [None, "latest", NEW, f"{NEW}-0a1b2c"])
def test_the_newest_run_by_default_and_by_its_names(given: str | None, log_path: Path) -> None:
    assert find_run(given, log_path) == log_path / NEW


def test_a_name_or_a_folder(log_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_run(OLD, log_path) == log_path / OLD
    assert find_run("backup", log_path) == log_path / "backup"
    assert find_run(str(log_path / OLD), Path("/nowhere")) == log_path / OLD
    monkeypatch.chdir(tmp_path)
    for name in (OLD, "backup", "here"):
        (tmp_path / name).mkdir()
    assert find_run(OLD, log_path) == log_path / OLD
    assert find_run("backup", log_path) == log_path / "backup"
    assert find_run("./backup", log_path) == Path("backup")
    assert find_run("here", log_path) == Path("here")
    assert find_run(".", log_path) == Path()
    assert find_run(f"result/{OLD}", Path("/nowhere")) == Path("result") / OLD


def test_a_misspelt_name_gets_the_nearest_ones(log_path: Path) -> None:
    with pytest.raises(FlagPerfError) as refused:
        find_run("run20260102030406", log_path)
    assert "'run20260102030406'" in refused.value.message and OLD in refused.value.remedy
    for given in ("x", f"{NEW}-ffffff"):  # that run has another uid
        with pytest.raises(FlagPerfError, match="there is no run"):
            find_run(given, log_path)


@pytest.mark.parametrize("given", [None, "latest", OLD])
def test_where_there_is_no_run_at_all(given: str | None, tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(FlagPerfError) as refused:
            find_run(given, path)
        assert "--log-path" in refused.value.remedy


def ended(log_path: Path, name: str, exit_code: int) -> Path:
    """A run that came to its end."""
    folder = log_path / name
    folder.mkdir()
    (folder / "journal.jsonl").touch()
    (folder / "summary.json").write_text(f'{{"run": "{name}", "exit_code": {exit_code}}}')
    return folder


def begun(log_path: Path, name: str) -> Journal:
    """A run that goes on as long as its journal is open."""
    (log_path / name).mkdir(parents=True)
    return Journal(log_path / name / "journal.jsonl")


def test_who_names_no_open_run_means_the_one_that_goes_on(tmp_path: Path) -> None:
    """A run that lives, then one that ended well on other hosts, then one that was refused."""
    journal = begun(tmp_path, OLD)
    newer, refused = ended(tmp_path, NEW, 0), ended(tmp_path, "run20260304050607", 3)
    assert find_open_run(None, tmp_path) == tmp_path / OLD
    assert find_open_run("latest", tmp_path) == find_run(None, tmp_path) == refused
    assert find_open_run(NEW, tmp_path) == newer
    journal.close()
    assert find_open_run(None, tmp_path) == newer  # the old one's end is nobody's question any more


def test_a_refused_run_does_not_stand_before_the_one_whose_controller_died(tmp_path: Path) -> None:
    begun(tmp_path, OLD).close()
    refused = ended(tmp_path, NEW, 3)
    assert find_open_run(None, tmp_path) == tmp_path / OLD
    (tmp_path / OLD / "journal.jsonl").unlink()
    (tmp_path / OLD).rmdir()
    assert find_open_run(None, tmp_path) == refused
