"""PROCESS_SETUP, as bash really sources it: what it sets is there, what it breaks is told, and it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from run_benchmarks.names import nodes_of
from run_benchmarks.stages import checks, process_setup
from run_benchmarks.stages.checks import Status
from tests.run_benchmarks.plan.tree import make_tree
from tests.run_benchmarks.process_table import pids_with
from tests.run_benchmarks.stages.checked_host import Site, assert_bad, assert_ok
from tests.run_benchmarks.stages.test_launch import launch_of


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return tmp_path / "set up.sh"


def run_in(script: Path, text: str, *argv: str) -> subprocess.CompletedProcess[str]:
    script.write_text(text)
    command = ["bash", "-c", process_setup.SHELL, "setup", str(script), *argv]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_the_command_has_what_the_script_sets_and_takes_the_shells_place(script: Path) -> None:
    text = 'export LOADED="pytorch 2.4"; set -- other words; echo "Loading"; cat\n'
    done = run_in(script, text, "sh", "-c", 'echo "$LOADED $0 $1"; exit 7', "a b", "*")
    assert (done.returncode, done.stdout) == (7, "pytorch 2.4 a b *\n")
    assert done.stderr == "Loading\n"


def test_nothing_of_the_guard_is_left_beside_the_command(script: Path) -> None:
    done = run_in(script, "true\n", "sh", "-c", "cat /proc/$$/task/$$/children")
    assert len(done.stdout.split()) == 1  # this cat


@pytest.mark.parametrize("text", ["module load nothing\n", "return 3\n", "false\n", "if\n"])
def test_what_fails_lets_nothing_run(script: Path, text: str) -> None:
    done = run_in(script, text, "echo", "ran")
    assert done.returncode != 0 and done.stdout == ""
    assert "PROCESS_SETUP: exit code" in done.stderr and str(script) in done.stderr


@pytest.mark.parametrize("text", ["sleep 300\n", "trap '' TERM; while :; do :; done\n", "exec sleep 300\n"])
def test_one_that_does_not_end_is_ended(script: Path, text: str) -> None:
    """With its shell; what it has started ends with the unit, whose supervisor sees to that."""
    script.write_text(text)
    shell = process_setup.SHELL.replace("left = 120", "left = 1")
    with script.with_suffix(".err").open("w+") as errors:
        argv = ["bash", "-c", shell, "setup", str(script), "echo", "ran"]
        running = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=errors, start_new_session=True)
        try:
            assert running.wait(timeout=60) == -signal.SIGKILL
            assert "not done after 120 s, ended" in script.with_suffix(".err").read_text()
        finally:
            with suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)


def test_the_preflight_sees_that_it_works(site: Site, script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site.conf(f'RUNTIME = "process"\nPROCESS_PYTHON = "python-of-module"\nPROCESS_SETUP = "{script}"\n')
    monkeypatch.setattr(checks, "_required_modules", lambda case: ("json",))
    assert_bad(site.check(checks.software), Status.ERROR, "no file that can be read", "correct PROCESS_SETUP")
    folder = script.parent / "module"
    folder.mkdir()
    python = folder / "python-of-module"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    script.write_text(f'PATH="{folder}:$PATH"; echo Loading\n')
    assert_ok(site.check(checks.software), "json, psutil")
    script.write_text("module load pytorch\n")
    assert_bad(site.check(checks.software), Status.ERROR, "fails: ", "mend it")
    script.write_text("exit 0\n")
    assert_bad(site.check(checks.software), Status.ERROR, "it ends the shell", "mend it")
    monkeypatch.setattr(process_setup, "SEE_S", 0.5)
    mark = uuid.uuid4().hex
    script.write_text(f"sh -c 'sleep 300; :' {mark}\n")
    assert_bad(site.check(checks.software), Status.ERROR, "not done after 0.5 s", "mend it")
    assert pids_with(mark) == []


def test_task_and_monitor_are_run_in_it(tmp_path: Path) -> None:
    plan = make_tree(tmp_path).load()
    launch = launch_of(replace(plan, run=replace(plan.run, runtime="process", process_setup="/opt/setup.sh")))
    node = nodes_of(plan.cases[0], 1)[0]
    for unit in (launch.task(node, ""), launch.monitor(node)):
        assert unit.argv[:5] == ("bash", "-c", process_setup.SHELL, "setup", "/opt/setup.sh")
