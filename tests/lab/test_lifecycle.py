"""The lab comes and goes: nothing stays behind, one at a time, and where there can be none it is said."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab import LabError, requirements, tiny_image
from tests.lab.census import all_pids, leftovers, namespaces
from tests.lab.fixtures import LabFactory
from tests.lab.lab import CHECKOUT, Lab
from tests.lab.lock import MachineLock
from tests.lab.place import FOLDER_VARIABLE, HIGHEST, NUMBER_VARIABLE, Place, here, labs_folder

ORPHAN = """
import os, signal, sys
from tests.lab import Lab
lab = Lab(2)
lab.up()
lab.freeze(1)
lab.slow(2, "1mbit")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def no_lab(lab: LabFactory) -> Iterator[None]:
    """The session's lab is out of the way, and one that a test made by hand is taken down."""
    lab.close()
    yield
    if (record := MachineLock(here().lock).read()) and record.kept:
        Lab.attach().down()


def by_hand(*arguments: str, code: int = 0) -> str:
    """Runs `python3 -m tests.lab` and returns what it prints, on either stream."""
    argv = [sys.executable, "-m", "tests.lab", *arguments]
    done = subprocess.run(argv, cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == code, done.stdout
    return done.stdout


@pytest.mark.usefixtures("no_lab")
def test_down_leaves_nothing_behind() -> None:
    image = tiny_image.build()
    files = [Path("/etc/hosts"), Path("/etc/resolv.conf"), Path("/etc/shadow")]
    before = [file.read_bytes() for file in files], sorted(Path("/root").glob(".ssh/*"))
    for _ in range(2):
        with Lab(2, images=[image]) as lab:
            lab.ssh(1, "docker", "run", "--detach", "--publish", "80:80", image, "sleep", "60")
            lab.slow(1, "10mbit")
            lab.freeze(2)
            there = {f"link {here().bridge}", f"link {here().cable(2)}", f"folder {here().folder}"}
            assert there <= set(leftovers(here()))
            inside = namespaces(pid for host in lab.hosts for pid in host.cgroup.pids())
            ours = {name: link for name, link in inside.items() if name not in namespaces(["self"])}
            assert len([name for name in ours if name.startswith("net:")]) == 3
            # Held open: the kernel would give the numbers of dead namespaces to new ones.
            held = [link.open() for link in ours.values()]
        assert leftovers(here()) == []
        assert not ours.keys() & namespaces(all_pids()).keys()
        for file in held:
            file.close()
    assert ([file.read_bytes() for file in files], sorted(Path("/root").glob(".ssh/*"))) == before


@pytest.mark.usefixtures("no_lab")
def test_lab_that_does_not_come_up_says_why_and_leaves_nothing_behind() -> None:
    with pytest.raises(LabError, match="unknown flag: --no-such-option"):
        Lab(1, dockerd_options=["--no-such-option"]).up()
    assert leftovers(here()) == []


@pytest.mark.usefixtures("no_lab")
def test_lab_of_a_killed_process_is_removed_by_the_next() -> None:
    """Whatever its number."""
    number = HIGHEST - here().number
    other = Place(number, labs_folder() / str(number))
    for environment in ({NUMBER_VARIABLE: str(number)}, {}):
        argv = [sys.executable, "-c", ORPHAN]
        done = subprocess.run(argv, cwd=CHECKOUT, env={**os.environ, **environment})
        assert done.returncode == -signal.SIGKILL
    with Lab(1) as lab:
        assert lab.ssh(1, "hostname").stdout == "h1\n"
        assert f"link {here().cable(2)}" not in leftovers(here())
        assert leftovers(other) == []
    assert leftovers(here()) == []


@pytest.mark.usefixtures("no_lab")
def test_it_leaves_alone_what_else_is_in_its_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(prefix="flagperf-test-lab.", dir=labs_folder().parent) as folder:
        other = Path(folder, "other")
        other.touch()
        monkeypatch.setenv(FOLDER_VARIABLE, folder)
        with Lab(1, hide=[folder]) as lab:  # as a checkout is in which that folder may lie
            assert lab.ssh(1, "test", "-e", folder, check=False).returncode == 1
            assert lab.home.is_relative_to(folder)
        assert leftovers(here()) == []
        assert other.exists()


@pytest.mark.usefixtures("no_lab")
def test_one_lab_of_a_number() -> None:
    with Lab(1):
        with pytest.raises(LabError, match=f"process {os.getpid()} has this lab"):
            Lab(1).up()
        assert "has this lab" in by_hand("up", "1", code=1)
        assert "has this lab" in by_hand("down", code=1)


@pytest.mark.usefixtures("no_lab")
def test_lab_by_hand_stays_until_down() -> None:
    assert f"h2  {here().address(2)}" in by_hand("up", "2", "--wait", "900")
    with pytest.raises(LabError, match="made by hand"):
        Lab(1).up()
    assert by_hand("ssh", "2", "hostname") == "h2\n"
    by_hand("kill", "2")
    assert "Connection refused" in by_hand("ssh", "2", "hostname", code=255)
    by_hand("start", "2")
    assert by_hand("ssh", "2", "docker", "ps", "--quiet") == ""
    assert f"export HOME={here().folder}/home" in by_hand("env")
    assert "there is no host 3" in by_hand("cut", "3", code=1)
    by_hand("down")
    assert leftovers(here()) == []
    assert "there is no lab" in by_hand("status", code=1)


@pytest.mark.usefixtures("no_lab")
@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("workers", ["0", "1"])
def test_interrupted_test_session_takes_its_lab_down(
    tmp_path: Path, signal_number: int, workers: str
) -> None:
    up = tmp_path / "up"
    test = (
        f"import pathlib, time\ndef test_it(lab):\n    lab(hosts=1)\n    pathlib.Path({str(up)!r}).touch()\n"
    )
    (tmp_path / "test_it.py").write_text(f"{test}    time.sleep(600)\n")
    plugins = ("-p", "tests.lab.fixtures", "-p", "tests.side_by_side")
    argv = [sys.executable, "-m", "pytest", *plugins, "-n", workers, "-c", "/dev/null", str(tmp_path)]
    with subprocess.Popen(argv, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True) as session:
        while not up.exists():
            assert session.poll() is None, session.communicate()[0]
            time.sleep(0.1)
        session.send_signal(signal_number)
        session.communicate()
    assert session.returncode != 0
    assert leftovers(here()) == []


def run_without_privilege(ci: str, workers: str) -> subprocess.CompletedProcess[str]:
    """Runs one lab test where the kernel refuses namespaces, as it does in an unprivileged container."""
    where = ("tests/lab/test_lab.py", "-k", "named")
    argv = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", workers, *where]
    if os.geteuid() == 0:
        argv = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", *argv]
    environment = {**os.environ, "CI": ci}
    return subprocess.run(argv, cwd=CHECKOUT, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("workers", ["0", "1"])
def test_where_no_lab_can_be_made_lab_tests_are_skipped_loudly(workers: str) -> None:
    done = run_without_privilege("", workers)
    assert done.returncode == 0
    assert "1 LAB TESTS SKIPPED: no lab on this machine: " in done.stdout


@pytest.mark.parametrize("workers", ["0", "1"])
def test_in_ci_a_skip_is_a_failure(workers: str) -> None:
    done = run_without_privilege("true", workers)
    assert done.returncode == 1
    assert "no lab on this machine, and CI is set: " in done.stdout


def test_without_root_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "need root" in (requirements.why_not.__wrapped__() or "")


def test_missing_command_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(requirements, "COMMANDS", {"no-such-tool": "some-package"})
    reason = requirements.why_not.__wrapped__()
    assert reason == "no-such-tool not found (apt-get install some-package)"
