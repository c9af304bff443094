"""pytest's way to a Slurm, and what happens where there can be none."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from tests.slurm.slurm import FREEZER, Slurm, why_no_slurm


def need_slurm() -> None:
    """Skip where there can be no Slurm; in CI, where that would hide a hole, fail."""
    if reason := why_no_slurm():
        reason = f"no Slurm on this machine: {reason}"
        pytest.fail(reason, pytrace=False) if os.environ.get("CI") else pytest.skip(reason)


def need_control_groups() -> None:
    """Skip also where Slurm cannot track processes by them."""
    need_slurm()
    if not FREEZER.exists():
        pytest.skip("no control groups of version 1 on this machine")


@pytest.fixture(scope="module")
def shared_slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """A cluster for the tests of a file."""
    need_slurm()
    before = signal.signal(signal.SIGTERM, lambda *_: pytest.exit("SIGTERM", returncode=143))
    cluster = Slurm(tmp_path_factory.mktemp("slurm"))
    try:
        with cluster.running():
            yield cluster
    finally:
        signal.signal(signal.SIGTERM, before)


def speak_to(slurm: Slurm, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make this process's commands speak to this Slurm."""
    for name in [name for name in os.environ if name.startswith(("SLURM_", "SBATCH_"))]:
        monkeypatch.delenv(name)
    for name, value in slurm.variables.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def slurm(shared_slurm: Slurm, monkeypatch: pytest.MonkeyPatch) -> Iterator[Slurm]:
    """The file's cluster, whole and without jobs; the commands of this process speak to it."""
    speak_to(shared_slurm, monkeypatch)
    yield shared_slurm
    shared_slurm.reset()
