"""Which run a user means."""

from __future__ import annotations

from pathlib import Path

import pytest

from run_benchmarks.results.find import find_run
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
