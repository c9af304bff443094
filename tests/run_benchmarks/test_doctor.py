"""`run.py doctor` on this machine: what it shows and exits with, and that nothing is left."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from run_benchmarks.doctor.examine import OWN_CHECKS
from run_benchmarks.stages.preflight import CHECKS, REACHABLE
from run_benchmarks.verbs import main
from tests.ports import reserved_port
from tests.run_benchmarks.whole_run import WholeRun, make_whole_run

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WholeRun]:
    with reserved_port() as port:
        yield make_whole_run(tmp_path, port, monkeypatch)


def test_the_help_names_every_check_and_exit_code(capsys: Capture) -> None:
    with pytest.raises(SystemExit):
        main(["doctor", "--help"])
    told = " ".join(capsys.readouterr().out.split())
    names = {check.__name__.replace("_", " ") for check in (*CHECKS, *OWN_CHECKS)} | {REACHABLE, "link"}
    assert [name for name in sorted(names) if name not in told.partition("preflight:")[2]] == []
    assert all(f"{code}: " in told for code in (0, 2, 3))


def test_a_host_is_examined_for_the_cases_and_nothing_is_left(run: WholeRun, capsys: Capture) -> None:
    run.configure(f'CHECKPOINT_PATH = "{run.folder}/checkpoints"\n')
    before = sorted(run.folder.rglob("*"))
    assert run.main("doctor", "--json") == 0
    assert sorted(run.folder.rglob("*")) == before
    content = json.loads(capsys.readouterr().out)
    checks = content["hosts"]["localhost"]
    assert content["healthy"] is True
    assert {
        checks[name]["status"] for name in ("reachable", "system", "memory", "deploy path", "free disk")
    } <= {"ok", "warning"}
    assert checks["accelerators"]["facts"]["acme devices"] == "1 x Acme X1"
    assert checks["devices"]["detail"] == "1 x Acme X1", "the preflight's own"
    assert checks["deploy path"]["detail"] == str(run.host)
    assert checks["data"]["status"] == "ok"
    assert "link" not in checks, "one host has none"


def test_what_forbids_a_run_exits_with_3(run: WholeRun, capsys: Capture) -> None:
    (run.folder / "data" / "behaviour").unlink()
    (run.folder / "data").rmdir()
    assert run.main("doctor") == 3
    shown = capsys.readouterr().out
    assert f"data        {run.folder}/data does not exist" in shown or "does not exist" in shown
    assert "-> put the data there on localhost" in shown
    assert run.main("doctor", "--no-cases") == 0
    assert "nothing asks for: host key" in capsys.readouterr().out


def test_a_folder_that_others_could_replace_is_refused_without_being_made(
    run: WholeRun, capsys: Capture, tmp_path_factory: pytest.TempPathFactory
) -> None:
    run.folder.chmod(0o777)
    assert run.main("doctor", "--no-cases") == 2
    assert "everybody may put something else in the place of what is written there" in capsys.readouterr().err
    conf = run.tree.config / "test_conf.py"
    result = str(run.folder / "result")
    conf.write_text(conf.read_text().replace(result, str(tmp_path_factory.mktemp("log"))))
    assert run.main("doctor", "--no-cases") == 3
    assert f"others may replace what is in {run.folder}" in capsys.readouterr().out
    assert not (run.folder / "fp").exists()


def test_where_no_case_is_valid_the_hosts_are_examined(run: WholeRun, capsys: Capture) -> None:
    run.configure("CASES = {}\n")
    assert run.main("doctor") == 0
    shown = capsys.readouterr()
    assert "no case is valid: the hosts are examined without one" in shown.err
    assert "accelerators  ok" in shown.out and "1 x Acme X1" in shown.out


def test_a_wrong_configuration_is_refused_with_what_does_without_its_cases(
    run: WholeRun, capsys: Capture
) -> None:
    assert run.main("doctor", "--cases", "toy:pytorch:X9:1:1:1") == 2
    assert "doctor --no-cases --config" in capsys.readouterr().err
    run.tree.configure(cluster_conf='HOSTS = {"acmee": ["localhost"]}\n')
    assert run.main("doctor", "--no-cases") == 2
    assert "acmee" in capsys.readouterr().err
