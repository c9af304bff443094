"""`run.py show`: a run from its folder alone, whatever has become of its configuration."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks.plan.secrets import by_name_alone
from run_benchmarks.results.load import load_run
from run_benchmarks.results.summary import without_nodes
from run_benchmarks.verbs import main
from tests.ports import reserved_port
from tests.run_benchmarks.whole_run import WholeRun, make_whole_run
from tests.run_benchmarks.written_run import NAME, SCHEMA1, write_run

RUN = "run20260102030405"


@pytest.fixture
def log_path(tmp_path: Path) -> Path:
    write_run(tmp_path / "result" / RUN)
    return tmp_path / "result"


@pytest.fixture
def whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WholeRun]:
    with reserved_port() as port:  # nobody can listen on this port meanwhile
        yield make_whole_run(tmp_path, port, monkeypatch)


def summed_up(folder: Path) -> Any:
    """What summary.json holds, of the run that is read back."""
    run = load_run(folder, by_name_alone)
    return replace(run, results=tuple(map(without_nodes, run.results))).as_dict()


def test_a_real_run_is_shown_after_its_configuration_has_gone(
    whole: WholeRun, capsys: pytest.CaptureFixture[str]
) -> None:
    assert whole.main() == 0
    table = capsys.readouterr().out.splitlines()[:2]
    assert summed_up(whole.result) == whole.summary
    assert load_run(whole.result, by_name_alone).notes == ()
    whole.configure("CASES = {'nonsense': 5}\nVENDOR = 7\n")
    whole.tree.configure(cluster_conf="HOSTS = not Python")
    assert whole.main() == 2
    capsys.readouterr()
    assert whole.main("show") == 0
    shown = capsys.readouterr().out
    assert shown.splitlines()[2:4] == table
    assert (
        "exit code 0" in shown
        and "`p_train /s` (samples/s; higher is better): samples / `no_eval_time`" in shown
    )
    assert whole.main("show", "--rescore") == 0
    assert "CONVERGED, as before; 0 of" in capsys.readouterr().out


@pytest.mark.parametrize("behaviour", ["fail", "unsaved"])
def test_what_a_real_run_ended_with_is_read_back_and_judged_the_same(behaviour: str, whole: WholeRun) -> None:
    whole.behave(behaviour)
    assert whole.main() == 1
    summary = whole.summary
    assert summed_up(whole.result) == summary
    for path in (whole.result / "summary.json", *whole.result.glob("*/*/result.json")):
        path.unlink()
    assert summed_up(whole.result)["rounds"] == summary["rounds"]


def test_tables_causes_and_meanings(log_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", RUN, "--log-path", str(log_path)]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{RUN}: started 2026-01-02T03:04:05+00:00, exit code 1\n")
    assert f"{NAME}  1      CONVERGED    15 " in out
    assert "rate" in out and "GB/s" in out
    assert f"{NAME}, round 2: FAILED\n  at the stage train on h2 (rank_failed): " in out
    assert "\x1b" not in out, "a log's colours would steer the terminal"
    assert "Preflight:\n- h1: clock: +0.7 s -> start NTP" in out
    assert f"results and logs: {log_path / RUN}" in out


def test_json_is_what_the_run_is_read_to(log_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(log_path / RUN), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == load_run(log_path / RUN, by_name_alone).as_dict()
    assert main(["show", str(log_path / RUN), "--json", "--rescore"]) == 0
    rescored = json.loads(capsys.readouterr().out)
    assert rescored["rounds"][0]["verdict"] == ["CONVERGED", "CONVERGED"]
    assert (rescored["folder"], rescored["notes"]) == (str(log_path / RUN), [])


def test_the_newest_run_below_the_log_path_of_a_configuration_that_is_not_valid(
    log_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (torn,) = (SCHEMA1 / "torn").iterdir()
    shutil.copytree(torn, log_path / torn.name)
    for conf in (
        f'FLAGPERF_LOG_PATH = "{log_path}"\nCASES = 5\n',
        f'import gone\nFLAGPERF_LOG_PATH_HOST = "{log_path}"',
    ):
        (tmp_path / "test_conf.py").write_text(conf)
        assert main(["show", "--config", str(tmp_path)]) == 0
        out = capsys.readouterr().out
        assert out.startswith(f"{torn.name}: ") and "has no exit code" in out
        assert "round 2 has no result: it was last seen at the stage train" in out


def test_a_run_that_is_not_there(log_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "run20260102030406", "--log-path", str(log_path)]) == 2
    error = capsys.readouterr().err
    assert "there is no run 'run20260102030406'" in error and RUN in error


def test_a_folder_in_a_run_leads_to_the_run_and_one_without_a_case_is_no_run(
    log_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for part in (log_path / RUN / NAME / "round1", log_path / RUN / NAME):
        assert main(["show", str(part)]) == 2
        assert (
            f"is a part of a run\n    -> name the folder of its run: {log_path / RUN}\n"
            in capsys.readouterr().err
        )
    shutil.copytree(log_path / RUN / NAME, tmp_path / "rounds")
    assert main(["show", str(tmp_path / "rounds")]) == 2
    assert "holds round1, round2, round3, but no case" in capsys.readouterr().err
    assert main(["show", str(log_path / RUN / NAME / "round1" / "h1_noderank0")]) == 2
    assert f"name the folder of its run: {log_path / RUN}" in capsys.readouterr().err


def test_a_copy_under_another_name_is_shown(log_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = log_path / "the good one"
    (log_path / RUN).rename(copy)
    (log_path / "no run").mkdir()
    for words in ([], ["the good one"], ["latest"]):
        assert main(["show", *words, "--log-path", str(log_path)]) == 0
        assert f"results and logs: {copy}" in capsys.readouterr().out
    shutil.copytree(next((SCHEMA1 / "torn").iterdir()), log_path / "a newer one")
    assert main(["show", "--log-path", str(log_path)]) == 0, "the newest is that which was begun last"
    assert f"results and logs: {log_path / 'a newer one'}" in capsys.readouterr().out
    assert main(["show", "--log-path", str(copy)]) == 0, "the run's own folder"
    assert f"results and logs: {copy}" in capsys.readouterr().out
    assert main(["show", "elsewhere", "--log-path", str(log_path)]) == 2
    assert "the good one" in capsys.readouterr().err


def test_the_notes_of_a_damaged_folder_are_in_what_is_scored_again(
    log_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (log_path / RUN / "plan.json").unlink()
    assert main(["show", RUN, "--log-path", str(log_path), "--rescore", "--json"]) == 0
    (note,) = json.loads(capsys.readouterr().out)["notes"]
    assert note.startswith("plan.json is not there")
