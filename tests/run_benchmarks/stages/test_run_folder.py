"""A run's folder on a host is made and removed without following what a task has planted: with real shells."""

from __future__ import annotations

import asyncio
import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from run_benchmarks.names import HostPaths, Node
from run_benchmarks.stages.run_folder import left_folders_argv, make_node_folder, remove_argv
from run_benchmarks.transports.local import LocalTransport
from tests.run_benchmarks.builders import make_case
from utils.errors import FlagPerfError


@pytest.fixture(params=["sh", "bash"])
def shell(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Hosts have either as their sh."""
    (tmp_path / "bin").mkdir()
    real = subprocess.run(
        ["sh", "-c", f"command -v {request.param}"], capture_output=True, check=True, text=True
    )
    (tmp_path / "bin/sh").symlink_to(real.stdout.strip())
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("CDPATH", "/usr")
    yield


@pytest.fixture
def paths(tmp_path: Path) -> HostPaths:
    work = f"{tmp_path}/the host/.flagperf"
    Path(work).mkdir(parents=True, mode=0o700)
    return HostPaths(work, f"{work}/tree-1", f"{work}/runs/uid", f"{work}/runs/uid/run1")


def node_of(number: int = 1) -> Node:
    return Node(make_case(["h1"]), number, 0)


def make(paths: HostPaths, node: Node) -> Path:
    asyncio.run(make_node_folder(LocalTransport(), paths, node))
    return Path(paths.node(node))


def remove(paths: HostPaths, *folders: Path) -> subprocess.CompletedProcess[str]:
    argv = remove_argv(paths, [str(folder) for folder in folders])
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def test_a_folder_that_every_user_of_a_container_may_write_to(paths: HostPaths, shell: None) -> None:
    """A container's root is another user than the ssh user; the work folder is closed to everybody else."""
    umask = os.umask(0o077)
    try:
        folder = make(paths, node_of())
    finally:
        os.umask(umask)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o777
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700


def test_a_round_folder_that_is_a_link_is_refused(paths: HostPaths, tmp_path: Path, shell: None) -> None:
    first = make(paths, node_of(1))
    (tmp_path / "elsewhere").mkdir()
    (first.parent.parent / "round2").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FlagPerfError, match="round2 is a link"):
        make(paths, node_of(2))
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_node_folder_that_is_there_already_is_refused(paths: HostPaths) -> None:
    """A task of an earlier round may have put a log into it, with the events that it wants to be seen."""
    folder = Path(paths.node(node_of(2)))
    folder.mkdir(parents=True)
    with pytest.raises(FlagPerfError, match="File exists"):
        make(paths, node_of(2))


@pytest.mark.skipif(os.geteuid() != 0, reason="gives folders away, which only root can")
def test_no_folder_is_made_where_the_work_folder_has_gone(paths: HostPaths, shell: None) -> None:
    """Another user has made the way to it anew: he would have the ssh user's folder in his own."""
    Path(paths.work).rmdir()
    os.chown(Path(paths.work).parent, 65534, 65534)
    with pytest.raises(FlagPerfError, match="is not there any more"):
        make(paths, node_of())
    assert not Path(paths.work).exists()
    Path(paths.work).mkdir(mode=0o700)
    with pytest.raises(FlagPerfError, match="belongs to nobody"):
        make(paths, node_of())
    assert list(Path(paths.work).iterdir()) == []


def test_what_was_collected_is_removed_and_the_rest_stays(paths: HostPaths, shell: None) -> None:
    first, second = make(paths, node_of(1)), make(paths, node_of(2))
    for folder in (first, second):
        (folder / "sub").mkdir()
        (folder / "sub/rank0.out.log").write_text("FINISHED")
    assert remove(paths, first, first.with_name("never made")).returncode == 0
    assert not first.parent.exists() and (second / "sub/rank0.out.log").exists()
    assert remove(paths, first, second).returncode == 0
    assert not Path(paths.run).exists() and Path(paths.work, "runs").is_dir()
    assert remove(paths, first, second).returncode == 0, "there is nothing left to do"


@pytest.mark.parametrize("collected", [1, 0], ids=["a node's folder", "what is empty"])
def test_what_another_host_removes_meanwhile_is_not_made_again(
    paths: HostPaths, tmp_path: Path, shell: None, collected: int
) -> None:
    """It shares the folders: one that was made again under its hands failed there, and here."""
    folder, made = make(paths, node_of()), tmp_path / "made"
    (folder / "rank0.out.log").write_text("FINISHED")
    for name, first in (
        ("env", 'case $(pwd -P) in */runs) rm -rf ./uid; esac; exec /usr/bin/env "$@"'),
        ("mkdir", f'echo "$@" >> "{made}"; exec /bin/mkdir "$@"'),
    ):
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{first}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    done = remove(paths, *[folder] * collected)
    assert (done.returncode, done.stderr, made.exists()) == (0, "", False)
    assert not Path(paths.run).exists() and Path(paths.work, "runs").is_dir()


def test_a_planted_link_is_removed_and_not_what_it_leads_to(
    paths: HostPaths, tmp_path: Path, shell: None
) -> None:
    folder, mine = make(paths, node_of()), tmp_path / "mine"
    (mine / "h1_noderank0").mkdir(parents=True)
    (mine / "h1_noderank0/thesis").write_text("years of work")
    folder.rmdir()
    folder.symlink_to(mine / "h1_noderank0")
    assert remove(paths, folder).returncode == 0
    assert not folder.is_symlink() and (mine / "h1_noderank0/thesis").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="gives folders away, which only root can")
def test_nothing_is_removed_from_a_work_folder_of_another_user(paths: HostPaths, shell: None) -> None:
    """The work folder has gone, with all of /var/tmp, and somebody has made one of that name."""
    folder = make(paths, node_of())
    os.chown(paths.work, 65534, 65534)
    done = remove(paths, folder)
    assert done.returncode != 0 and f"{paths.work} is no folder of root alone" in done.stderr
    left = subprocess.run(left_folders_argv(paths.work, "uid"), capture_output=True, text=True, check=False)
    assert left.returncode == 3 and folder.is_dir()


def test_nothing_is_removed_through_a_planted_round_folder(
    paths: HostPaths, tmp_path: Path, shell: None
) -> None:
    folder, mine = make(paths, node_of()), tmp_path / "mine"
    (mine / "h1_noderank0").mkdir(parents=True)
    (mine / "h1_noderank0/thesis").write_text("years of work")
    folder.rmdir()
    folder.parent.rmdir()
    folder.parent.symlink_to(mine)
    done = remove(paths, folder)
    assert done.returncode != 0 and "round1 is a link" in done.stderr
    assert (mine / "h1_noderank0/thesis").exists()
