"""Both versions of the control groups, whichever this machine boots with."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.lab.cgroup import ROOT, Cgroup, existing

# A real version 2 tree: the only one, or the one beside version 1's trees.
TREES = [tree for tree in (ROOT, ROOT / "unified") if (tree / "cgroup.controllers").exists()]


@pytest.mark.skipif(os.geteuid() != 0 or not TREES, reason="needs root and a cgroup2 mount")
def test_version_2_freezes_and_kills_real_processes() -> None:
    group = Cgroup(f"flagperf-test-{os.getpid()}", TREES[0])
    enter = " && ".join(f"echo 0 > {file}" for file in group.create())
    process = subprocess.Popen(["sh", "-c", f"{enter} && echo in && exec sleep 60"], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"in\n"
        assert group.pids() == [process.pid]
        assert existing(group.name, TREES[0]) == [group]
        group.freeze()
        assert "frozen 1" in (group.root / group.name / "cgroup.events").read_text()
        group.kill()
        assert process.wait() == -9
    finally:
        process.kill()
        group.remove()
    assert existing(group.name, TREES[0]) == []


@pytest.fixture(params=["v1", "v2"])
def fake_tree(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A fake of the kernel's file tree (an ordinary folder): which file is written is all that is tested."""
    if request.param == "v2":
        (tmp_path / "cgroup.controllers").write_text("cpu memory pids")
        (tmp_path / "flaglab1-h1").mkdir()
        (tmp_path / "flaglab1-h1/cpu.max").write_text("max 100000")
    else:
        (tmp_path / "cpu/flaglab1-h1").mkdir(parents=True)
        (tmp_path / "cpu/flaglab1-h1/cpu.cfs_quota_us").write_text("-1")
    return tmp_path


def test_cpu_limit_is_written_where_the_version_wants_it(fake_tree: Path) -> None:
    group = Cgroup("flaglab1-h1", fake_tree)
    v2 = (fake_tree / "cgroup.controllers").exists()
    file = fake_tree / ("flaglab1-h1/cpu.max" if v2 else "cpu/flaglab1-h1/cpu.cfs_quota_us")
    group.limit_cpu(150)
    assert file.read_text() == ("150000 100000" if v2 else "150000")
    group.limit_cpu(None)
    assert file.read_text() == ("max 100000" if v2 else "-1")


def test_host_processes_enter_a_leaf_of_each_tree(fake_tree: Path) -> None:
    v2 = (fake_tree / "cgroup.controllers").exists()
    trees = [fake_tree] if v2 else [fake_tree / tree for tree in ("cpu", "memory", "freezer", "pids")]
    assert Cgroup("flaglab1-h1", fake_tree).create() == [t / "flaglab1-h1/host/cgroup.procs" for t in trees]
