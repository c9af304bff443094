"""`run.py cleanup`: what it lists, what it removes, what it refuses to touch; real processes on this machine."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import pty
import re
import secrets
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from run_benchmarks.commands import RUN_PY, place_options, run_command
from run_benchmarks.journal import Journal
from run_benchmarks.names import JOURNAL, RUN_NAME
from run_benchmarks.runtimes import open_runtime
from run_benchmarks.runtimes.base import Unit
from run_benchmarks.transports.local import LocalTransport
from run_benchmarks.verbs import options
from tests.ports import reserved_port
from tests.run_benchmarks.whole_run import REAL_TRAINING, WholeRun, make_whole_run

Capture = pytest.CaptureFixture[str]
NAME = "run20260102030405"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WholeRun]:
    with reserved_port() as port:  # nobody can listen on this port meanwhile
        yield make_whole_run(tmp_path, port, monkeypatch)


@pytest.fixture
def uid(run: WholeRun) -> Iterator[str]:
    """A run of which a unit goes on here."""
    uid = f"{NAME}-{secrets.token_hex(3)}"
    run.host.mkdir(parents=True, mode=0o700)
    runtime = open_runtime(run.tree.load().run)
    unit = Unit(f"flagperf-{uid}", {"flagperf.run": uid}, "", ("sleep", "600"), tree=str(REAL_TRAINING))
    asyncio.run(runtime.start(LocalTransport(), unit))
    yield uid
    asyncio.run(runtime.remove_all(LocalTransport(), uid))


@pytest.fixture
def journal(run: WholeRun, uid: str) -> Iterator[Journal]:
    """The journal of that run, whose controller goes on (this process)."""
    folder = run.folder / "result" / NAME
    folder.mkdir(parents=True)
    journal = Journal(folder / JOURNAL)
    journal.write("run_started", run=NAME, uid=uid)
    yield journal
    journal.close()


def test_what_a_run_left_is_listed_with_what_of_it_runs(run: WholeRun, uid: str, capsys: Capture) -> None:
    (run.host / "runs" / uid).mkdir(parents=True)
    assert run.main("cleanup") == 0
    listed = capsys.readouterr().out
    assert f"{uid}: whether its controller still runs is not known\n" in listed
    left = f"logs not collected so far, in {run.host / 'runs' / uid}"
    assert f"    localhost: flagperf-{uid} (running), {left}\n" in listed


def test_what_a_host_says_is_never_a_line_of_its_own(run: WholeRun, tmp_path: Path, capsys: Capture) -> None:
    lie = {"name": f"u (ended)\n{NAME}-aaaaaa: it has ended", "labels": {"flagperf.run": f"{NAME}-abcdef"}}
    lie |= {"running": False, "state": "x\nnode9: no run has left anything here"}
    python = tmp_path / "python3"
    lies = f"*' list '*) cat >/dev/null; printf '%s\\n' {shlex.quote(json.dumps(lie))};;"
    python.write_text(f'#!/bin/sh\ncase "$*" in {lies}\n*) exec {sys.executable} "$@";;\nesac\n')
    python.chmod(0o755)
    run.configure(f"PROCESS_PYTHON = {str(python)!r}\n")
    assert run.main("cleanup") == 0
    first, second, *others = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{NAME}-abcdef: ") and second.startswith("    localhost: u (ended) ")
    assert not any("has left anything" in line for line in others)


def test_where_nothing_is_left_it_says_where_it_looked(run: WholeRun, capsys: Capture) -> None:
    uid = f"{NAME}-000000"
    assert run.main("cleanup") == 0
    assert uid not in capsys.readouterr().out  # others' may be there: processes are seen on the whole machine
    assert run.main("cleanup", uid) == 2
    error = capsys.readouterr().err
    assert f"localhost: there is no run '{uid}'" in error
    for place in (run.host / "units", run.host / "pip", run.host / "runs", run.folder / "result"):
        assert str(place) in error


def test_a_run_that_ended_is_removed_and_others_are_left_alone(
    run: WholeRun, uid: str, journal: Journal, capsys: Capture
) -> None:
    journal.close()
    builds = [
        run.host / "pip" / f"flagperf-{owner}-build-0123" for owner in (uid, "run20250101000000-ffffff")
    ]
    copies = [run.host / f"copy-{owner}-0123456789ab" for owner in (uid, "run20250101000000-ffffff")]
    for build in (*builds, *copies):
        build.mkdir(parents=True)
        (build / "pip.conf").write_text("a secret")
    assert run.main("cleanup") == 0
    assert f"{uid}: its controller has died; `run.py status {NAME}` says how" in capsys.readouterr().out
    with (run.folder / "result" / NAME / "journal.jsonl").open("a") as file:
        file.write('{"time": 1, "event": "run_ended", "exit_code": 0}\n')
    assert run.main("cleanup") == 0
    assert f"{uid}: it has ended\n" in capsys.readouterr().out
    assert run.main("cleanup", uid) == 0
    assert f"localhost: removed flagperf-{uid}, {builds[0]}, {copies[0]}\n" in capsys.readouterr().out
    assert run.units_left() == []
    assert [path.exists() for path in (*builds, *copies)] == [False, True, False, True]
    assert run.main("cleanup", NAME) == 0, "a run that is known here, by its name"
    shown = capsys.readouterr().out
    assert "nothing of this run is left to remove here" in shown and str(run.host / "units") in shown


@pytest.mark.parametrize("hidden", ["", '{"event": "ke'])
def test_where_the_journal_hides_which_logs_are_kept_all_stay(
    run: WholeRun, uid: str, journal: Journal, capsys: Capture, hidden: str
) -> None:
    journal.close()
    result, node = run.folder / "result" / NAME, "toy/round1/localhost_noderank0"
    (result / node).mkdir(parents=True)
    (result / node).with_name("round.json").write_text('{"hosts": ["localhost"]}')
    with (result / JOURNAL).open("a") as file:
        file.write(f'{hidden}{{"event": "kept", "folder": "another"}}\n{{"event": "run_ended"}}\n')
    logs = run.host / "runs" / uid / NAME / node
    logs.mkdir(parents=True)
    (logs / "rank0.out.log").write_text("nowhere else")
    assert run.main("cleanup", uid) == (3 if hidden else 0)
    said = capsys.readouterr()
    assert run.units_left() == []
    assert logs.exists() == bool(hidden), said.out
    if hidden:
        assert f"{result / JOURNAL}:2: not all of the run's journal can be read: " in said.err
        assert f"its logs that were not collected stay in {run.host / 'runs' / uid}" in said.out


def test_a_run_that_goes_on_is_not_touched_unasked(
    run: WholeRun, uid: str, journal: Journal, capsys: Capture
) -> None:
    assert run.main("cleanup", uid) == 2
    error = capsys.readouterr().err
    assert f"{uid}: its controller still runs; nothing was removed" in error
    assert run.units_left() == [f"flagperf-{uid}"]
    command = re.search(r"-> if it is over, or may be lost: (.*)", error)
    assert command and f"cleanup {uid} --yes --config {run.tree.config}" in command[1]
    assert run.main("cleanup", "--yes", uid) == 0
    assert run.units_left() == []


@pytest.mark.parametrize(("answer", "left"), [("n", 1), ("", 1), ("y", 0)])
def test_on_a_terminal_it_asks(
    answer: str, left: int, run: WholeRun, uid: str, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    controlling, terminal = pty.openpty()
    with os.fdopen(controlling, "w") as typed, os.fdopen(terminal) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        typed.write(f"{answer}\n")
        typed.flush()
        assert run.main("cleanup", uid) == (2 if left else 0)
    assert len(run.units_left()) == left


def test_the_command_of_a_message_runs_as_it_stands(run: WholeRun, uid: str, tmp_path: Path) -> None:
    """By any shell, in any folder, also where folders have blanks in their names."""
    config = tmp_path / "a folder"
    run.tree.config.rename(config)
    command = run_command("cleanup", uid, "--yes", *place_options(config, run.folder / "result"))
    done = subprocess.run(["sh", "-c", command], cwd="/", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"removed flagperf-{uid}" in done.stdout
    assert run.units_left() == []


def test_a_command_names_a_configuration_where_it_is_not_the_default_one() -> None:
    shipped = RUN_PY.parent / "config"
    assert place_options(shipped) == ()
    assert place_options(shipped, Path("/logs")) == ("--log-path", "/logs")
    assert shlex.split(run_command("plan")) == [sys.executable, str(RUN_PY), "plan"]


@pytest.mark.parametrize("words", [(), ("--unused",), (NAME,)])
def test_outside_the_job_whose_nodes_are_meant_it_says_so(
    words: tuple[str, ...], run: WholeRun, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    run.tree.configure(cluster_conf='HOSTS = "slurm"\n')
    assert run.main("cleanup", *words) == 2
    shown = capsys.readouterr()
    assert "the job that run.py is in, and it is in none" in shown.err
    assert not shown.out


def test_it_works_where_the_cases_of_the_day_are_not_valid(run: WholeRun, capsys: Capture) -> None:
    run.configure('CASES = {"no:such:case": 7}\nVENDOR = "none"\n')
    (run.tree.training / "acme/vendor.py").write_text("raise SystemExit")
    assert run.main("cleanup") == 0
    assert "localhost: " in capsys.readouterr().out


@pytest.mark.parametrize(
    "given",
    ["", "*", "run*", f"{NAME}-*", f"{NAME}-abcde*", f"{NAME}-abcdef\n", "..", "/", f"../{NAME}", NAME[:-1]],
)
def test_it_takes_the_id_of_a_run_and_nothing_else(
    given: str, run: WholeRun, uid: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is asked of any host: an unset variable in a script removed what was none of FlagPerf's."""
    monkeypatch.setattr("run_benchmarks.left_behind.survey", None)
    with pytest.raises(SystemExit) as caught:
        run.main("cleanup", "--yes", given)
    assert caught.value.code == 2
    assert ("is empty" if not given else "is not the ID of a run") in capsys.readouterr().err
    assert run.units_left() == [f"flagperf-{uid}"]


@settings(max_examples=200, deadline=None, derandomize=True)
@given(text=st.text() | st.from_regex(RUN_NAME) | st.from_regex(r"run[\d*?]+(-[0-9a-f*]+)?"))
def test_only_what_is_made_as_an_id_passes_for_one(text: str) -> None:
    try:
        assert options.run_id(text) == text
    except argparse.ArgumentTypeError:
        assert not re.fullmatch(r"run[0-9]{14}(-[0-9a-f]{6})?", text)
    else:
        assert re.fullmatch(r"run[0-9]{14}(-[0-9a-f]{6})?", text)


def test_what_has_no_name_of_ours_belongs_to_no_run(run: WholeRun, uid: str, capsys: Capture) -> None:
    """And is neither listed nor removed; what lies in its result folder says nothing of it."""
    planted = [
        run.host / "runs" / "*",
        run.host / "pip" / "flagperf-*-build-1",
        run.host / "units" / "planted",
    ]
    for folder in planted:
        folder.mkdir(parents=True)
    (planted[-1] / "unit.json").write_text("{}")
    folder = run.folder / "result" / NAME
    folder.mkdir(parents=True)
    (folder / JOURNAL).write_text(
        json.dumps({"event": "run_started", "run": NAME, "uid": f"{NAME}-*"}) + "\n"
    )
    assert run.main("cleanup") == 0
    shown = capsys.readouterr()
    assert uid in shown.out and "*" not in shown.out
    assert f"left alone, no unit of ours: '{planted[-1]}'" in shown.err
    assert run.main("cleanup", "--yes", NAME) == 0
    assert f"removed flagperf-{uid}" in capsys.readouterr().out
    assert all(folder.is_dir() for folder in planted)


def test_settings_that_it_needs_are_refused_where_they_are_wrong(run: WholeRun, capsys: Capture) -> None:
    run.configure('RUNTIME = "podmann"\n')
    assert run.main("cleanup") == 2
    assert "RUNTIME" in capsys.readouterr().err


def test_a_host_that_is_out_of_reach_exits_with_3(run: WholeRun, capsys: Capture) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        run.tree.configure(cluster_conf=f'HOSTS = ["127.0.0.1"]\nSSH_PORT = "{port}"\n')
        assert run.main("cleanup", f"{NAME}-abcdef") == 3
    error = capsys.readouterr().err
    assert "127.0.0.1: " in error and "nothing of a run" in error
