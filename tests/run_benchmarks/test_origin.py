"""What the controller says of itself and of a round's hosts: by real git checkouts, by what the preflight measured."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from run_benchmarks.origin import harness_of, origin_of
from run_benchmarks.results.folder import RoundKey
from run_benchmarks.results.provenance import ClockOffset, Harness, Origin
from run_benchmarks.resumption import RoundSoFar
from run_benchmarks.round_state import RoundState
from run_benchmarks.stages.checks import Check, Status
from tests.run_benchmarks.builders import make_case, make_nodes, observed


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false")
    argv = ["git", "-C", str(folder), *identity, *words]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The `training/` folder of a small checkout."""
    training = tmp_path / "flagperf" / "training"
    for name in ("run.py", "config/test_conf.py"):
        path = training / "run_benchmarks" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("A = 1\n")
    git(tmp_path, "init", "--quiet", "flagperf")
    git(training, "add", ".")
    git(training, "commit", "--quiet", "--message", "first")
    return training


def test_a_checkout_is_named_by_its_commit(checkout: Path) -> None:
    harness = harness_of(checkout, "0" * 64)
    assert (harness.commit, harness.dirty) == (git(checkout, "rev-parse", "HEAD"), False)
    assert harness.tree == "0" * 64 and harness.python and not harness.unmeasured


@pytest.mark.parametrize(
    ("name", "dirty"),
    [
        ("run_benchmarks/run.py", True),
        ("acme/vendor.py", True),  # code that no commit has
        ("run_benchmarks/config/test_conf.py", False),  # what the user chose stands in plan.json
        ("../README.md", False),
        ("flagperf.out", False),  # beside the folders lies what no host gets
    ],
)
def test_dirty_is_other_code_and_not_another_configuration(name: str, dirty: bool, checkout: Path) -> None:
    (checkout / name).parent.mkdir(exist_ok=True)
    (checkout / name).write_text("A = 2\n")
    assert harness_of(checkout, "").dirty is dirty


def test_a_copy_is_no_checkout_not_even_inside_of_another_one(checkout: Path, tmp_path: Path) -> None:
    copy = checkout.parent / "copy"
    (copy / "run_benchmarks").mkdir(parents=True)
    (copy / "run_benchmarks" / "run.py").write_text("A = 1\n")
    (checkout.parent / ".gitignore").write_text("copy\n")
    for folder in (copy, tmp_path):
        harness = harness_of(folder, "abc")
        assert harness.commit is harness.dirty is None and harness.tree == "abc"
        assert harness.unmeasured.startswith("git: fatal: ")


def test_without_git_nothing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert harness_of(tmp_path, "").unmeasured == "there is no git"


def test_what_the_preflight_measured_goes_with_each_round() -> None:
    clock = Check("clock", Status.WARNING, "+0.7 s", facts={"offset_s": 0.7, "uncertainty_s": 0.01})
    data = Check("data", Status.OK, "", facts={"/data/toy": "d1", "/data/other": "d2"})
    checks = {"h1": [clock, data], "h2": [Check("reachable", Status.ERROR, "no")]}
    session: Any = SimpleNamespace(harness=Harness(commit="c0ffee"), checks=checks)
    state = RoundState(make_case(), 1, "2026", make_nodes())
    state.image_digests = {"h1": ("toy@sha256:1",), "h2": ()}
    origin = origin_of(session, state)
    assert origin.harness.commit == "c0ffee"
    assert origin.clock_offsets == {"h1": ClockOffset(0.7, 0.01)}
    assert origin.data == {"h1": "d1"}
    assert origin.image_digests == {"h1": ("toy@sha256:1",)}


def test_of_a_round_that_is_taken_up_what_was_seen_before_its_ranks_started_counts() -> None:
    before = Origin(
        clock_offsets={"h1": ClockOffset(0.1, 0.01), "h2": ClockOffset(0.2, 0.01)},
        data={"h1": "d1", "h2": "d1"},
        image_digests={"h1": ("toy@sha256:1",)},
    )
    case = make_case()
    seen = replace(observed(case), origin=before)
    state = RoundState.taken_up(case, RoundSoFar(RoundKey(case.settings.name, 1), "train", seen=seen))
    state.nodes = make_nodes()
    now = Check("data", Status.OK, "", facts={"/data/toy": "altered since"})
    session: Any = SimpleNamespace(harness=Harness(commit="c0ffee"), checks={"h1": [now]})
    assert origin_of(session, state) == replace(before, harness=session.harness)
