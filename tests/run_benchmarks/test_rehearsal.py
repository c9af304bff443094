"""The rehearsal of a run: its commands are those that the run itself gives, and it leaves nothing."""

from __future__ import annotations

import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from run_benchmarks.images import pip_handover
from run_benchmarks.plan_view import plan_lines
from run_benchmarks.stages.passing import FIRST, KEEP, PASS_ON_FROM
from tests.ports import reserved_port
from tests.run_benchmarks.plan.tree import TEST_CONF, Tree, make_tree
from tests.run_benchmarks.whole_run import WholeRun, make_whole_run
from utils.pass_on import BOOT

LOGGED = re.compile(r"\]localhost: (.*): (?:exit code \d+|no end is known) after [\d.]+ s$")
RUN_ID = re.compile(r"run\d{14}(-[0-9a-f]{6})?")
# The last reading of rank 0's log begins where the follower left it: a byte that no plan can name.
LAST_READING = re.compile(r"(?<= rank0\.out\.log )\d+$")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WholeRun]:
    with reserved_port() as port:  # nobody can listen on this port meanwhile
        yield make_whole_run(tmp_path, port, monkeypatch)


def without_ids(commands: list[str]) -> set[str]:
    """What is the same in every run: neither its ID nor how far its log had been read when its task ended."""
    return {LAST_READING.sub("BYTE", RUN_ID.sub("RUN", command)) for command in commands}


def test_the_plan_shows_every_command_of_the_run_and_no_other(run: WholeRun) -> None:
    run.configure('FLAGPERF_LOG_LEVEL = "debug"\n')
    lines = [line for line in plan_lines(run.tree.load()) if line and not line.startswith("#")]
    shown = [line for line in lines if not line.startswith("export ")]  # a command's variables
    assert run.main() == 0
    lines = (run.result / "flagperf_run.log").read_text(encoding="utf-8").splitlines()
    given = [match[1] for line in lines if (match := LOGGED.search(line))]
    assert len(given) > 20
    assert without_ids(shown) == without_ids(given)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    tree = make_tree(tmp_path)
    tree.write("benchmarks/toy/pytorch/requirements.txt", "h5py\n")
    return tree


def test_what_its_rounds_write_is_gone(tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    assert list(plan_lines(tree.load()))
    assert list((tmp_path / "tmp").iterdir()) == []


def test_packages_are_not_packed_for_it(tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of wheels may be larger than the disk that a plan is made on has room."""

    def packed(*arguments: object) -> None:
        raise AssertionError("nothing reads it")

    (tmp_path / "wheels").mkdir()
    tree.configure(test_conf=TEST_CONF + f'PIP_WHEEL_DIRS = ["{tmp_path}/wheels"]\n')
    monkeypatch.setattr(pip_handover, "_write_archive", packed)
    lines = list(plan_lines(tree.load()))
    assert any("/pip/flagperf-" in line for line in lines)
    assert not any("fail" in line for line in lines if line.startswith("# it would"))


def test_what_would_end_the_round_is_shown(tree: Tree) -> None:
    plan = tree.load()
    shutil.rmtree(tree.training / "acme/docker_image")
    lines = list(plan_lines(plan))
    assert any(line.startswith("# it would fail at the stage image: ") for line in lines)
    assert any("mkdir -p " in line for line in lines)


def test_each_image_is_made_once_and_each_host_gets_it(tree: Tree) -> None:
    """The second host loads what the first one built; a second case with the same image finds it there."""
    conf = TEST_CONF.replace(
        '    "toy:pytorch:X1:1:2:1": "/data/toy",\n',
        '    "toy:pytorch:X1:2:1:1": "/data/toy",\n    "toy:pytorch:X1:1:2:1": "/data/toy",\n',
    )
    tree.configure(test_conf=conf)
    commands = [shlex.split(line) for line in plan_lines(tree.load()) if line and not line.startswith("#")]
    verbs = [argv[1] for argv in commands if argv[0] == "docker"]
    assert (verbs.count("build"), verbs.count("load"), verbs.count("save")) == (1, 1, 1)


def test_many_hosts_are_shown_passing_on_what_they_got(tree: Tree) -> None:
    """The image leaves its builder once, and the code this machine for the first two; no command of it would fail."""
    count = PASS_ON_FROM + 1
    conf = TEST_CONF.replace('"toy:pytorch:X1:1:2:1"', f'"toy:pytorch:X1:{count}:1:1"')
    config = tree.training / "acme/toy-pytorch/config"
    shutil.copy(config / "config_X1x2x1.py", config / f"config_X1x{count}x1.py")
    tree.configure(test_conf=conf, cluster_conf=f'HOSTS = ["n[1-{count}]"]')
    lines = list(plan_lines(tree.load()))
    assert not [line for line in lines if line.startswith("# it would")]
    commands = [shlex.split(line) for line in lines if line and not line.startswith("#")]
    of_files = [argv for argv in commands if BOOT in argv]
    assert len(of_files) == 2 * (count - FIRST) + 2 * (count - 1 - FIRST)
    assert sum(KEEP in argv for argv in commands) == 2 * FIRST
    assert [argv[:2] for argv in commands].count(["docker", "save"]) == 1
