"""The trial: whole ones of all vendors without their chips, and what it says where it cannot be made."""

from __future__ import annotations

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from run_benchmarks.conformance import on_chip, trial, without_chip
from run_benchmarks.conformance.records import CheckOutcome, CheckResult, Options
from run_benchmarks.conformance.sandbox import Sandbox, end_left, last_words
from run_benchmarks.conformance.substitutes import made_python
from run_benchmarks.plan.vendor_record import Chip
from tests.warm_python import Warm
from utils.config_files import load_constants
from utils.records import Failure, FailureClass, Stage, Verdict
from utils.telemetry.records import Sample, Telemetry, Window

TRAINING = Path(__file__).resolve().parents[3] / "training"


VENDORS = sorted({path.parent.name for path in TRAINING.glob("*/vendor.py")} - {"cpu"})  # its chip is here
PYTORCHS_OWN = ("cuda", "xpu")
SAMPLED_BY_TOOL = (
    "cambricon",
    "hygon",
    "iluvatar",
    "kunlunxin",
    "metax",
)  # the others by libraries that are not here
LISTED = set(VENDORS) - {"cambricon", "nvidia"}  # by a recording of a host with two chips or more


@pytest.fixture
def warm_ranks(warm_pytorch: Warm, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranks of a trial start at once."""

    def warm(sandbox: Sandbox) -> tuple[Sandbox, Path]:
        own, packages = made_python(sandbox)
        return replace(own, python=Path(warm_pytorch.of(str(own.python), str(packages)))), packages

    monkeypatch.setattr(without_chip, "made_python", warm)


@pytest.mark.slow
@pytest.mark.usefixtures("warm_ranks")
@pytest.mark.parametrize("vendor", VENDORS)
def test_a_vendor_is_tried_without_its_chip(vendor: str) -> None:
    device_type = load_constants(TRAINING / vendor / "vendor.py")["DEVICE_TYPE"]
    checks = list(trial.checks(TRAINING / vendor, Options(Path(sys.executable))))
    outcomes = {check.name: check.outcome for check in checks}
    assert (outcomes.pop("monitor") is CheckOutcome.PASSED) == (vendor in SAMPLED_BY_TOOL), checks
    assert (outcomes.pop("preflight") is CheckOutcome.PASSED) == (vendor in LISTED), checks
    assert len(outcomes) == 6 and set(outcomes.values()) == {CheckOutcome.PASSED}, checks
    details = {check.name: check.detail for check in checks}
    has_another_name = device_type in PYTORCHS_OWN
    assert f"{'standin' if has_another_name else device_type}:0" in details["device"]
    assert (f"{device_type} and" in details["device"]) == has_another_name
    assert "allreduce" in details["collectives"]


def test_a_python_without_a_framework_proves_nothing(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho torch h5py\n")
    python.chmod(0o755)
    (check,) = trial.checks(TRAINING / "ascend", Options(python))
    assert (check.outcome, check.detail) == (CheckOutcome.NOT_PROVEN, "this Python lacks torch, h5py")
    assert "--python" in check.remedy
    (check,) = trial.checks(TRAINING / "ascend", Options(tmp_path / "none"))
    assert check.outcome is CheckOutcome.NOT_PROVEN and "there is no " in check.detail


def test_nothing_is_executed_of_the_folder_that_it_was_started_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may have called it in /tmp, where anybody puts an importlib.py."""
    here = tmp_path / "here"
    here.mkdir()
    for module in ("importlib", "contextlib", "warnings", "venv", "site"):
        (here / f"{module}.py").write_text("raise SystemExit('planted')\n")
    monkeypatch.chdir(here)
    monkeypatch.setattr(trial, "NEEDED", ("no_such_module",))
    (check,) = trial.checks(TRAINING / "ascend", Options(Path(sys.executable)))
    assert check.detail == "this Python lacks no_such_module"
    _, packages = made_python(Sandbox(tmp_path / "trial", "ascend", Path(sys.executable)))
    assert packages.is_dir()


def test_a_failed_hook_is_named_by_its_line(tmp_path: Path) -> None:
    frames = 'File "/s/training/acme/bert-pytorch/extern/o.py", line 12, in f\nFile "/torch/optim.py", line 3, in g\n'
    (tmp_path / "rank1.log").write_text(frames)
    failure = Failure(
        Verdict.FAILED, Stage.TRAIN, FailureClass.RANK_FAILED, "", "a rank failed", "A\nKeyError"
    )
    assert last_words(tmp_path, failure) == "A | KeyError"
    assert last_words(tmp_path, replace(failure, file="rank1.log")) == "extern/o.py:12: A | KeyError"


def test_what_names_a_trials_folder_does_not_outlive_it(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", "import time; time.sleep(60)"]
    left = subprocess.Popen([*argv, str(tmp_path)])
    other = subprocess.Popen(argv)
    try:
        end_left(tmp_path)
        assert left.wait(30) == -signal.SIGKILL and other.poll() is None
    finally:
        other.kill()
        other.wait()


def chip(memory_gib: float | None) -> Chip:
    return Chip("A1", ("A1",), memory_gib, {}, {"": "a test"})


def of_memory(chip: Chip, **bytes_by_name: float) -> list[CheckResult]:
    facts = {f"mem_{name}_bytes": value for name, value in bytes_by_name.items()}
    return list(on_chip.memory_trouble(facts, chip))


def test_memory_is_the_chips() -> None:
    gib = 2.0**30
    assert of_memory(chip(64.0), total=63 * gib, reserved=20 * gib) == []
    (check,) = of_memory(chip(32.0), total=63 * gib, reserved=20 * gib)
    assert check.outcome is CheckOutcome.FAILED and "63.00 GiB, CHIPS says 32" in check.detail
    (check,) = of_memory(chip(64.0), total=63 * gib, reserved=70 * gib)
    assert check.outcome is CheckOutcome.FAILED
    (check,) = of_memory(chip(None), total=63 * gib, reserved=20 * gib)
    assert check.outcome is CheckOutcome.NOT_PROVEN
    (check,) = of_memory(chip(64.0))
    assert check.outcome is CheckOutcome.NOT_PROVEN


def sampled(*powers: float | None) -> Telemetry:
    return Telemetry(
        "", samples=tuple(Sample(time, "acme", str(time % 2), power_w=w) for time, w in enumerate(powers))
    )


def test_under_load_the_device_that_works_counts() -> None:
    assert on_chip.highest_mean(sampled(10.0, 90.0, 20.0, 110.0), "acme", "power_w", None) == 100.0
    window = Window(2, 3)
    assert on_chip.highest_mean(sampled(10.0, 90.0, 20.0, 110.0), "acme", "power_w", window) == 110.0
    assert on_chip.highest_mean(sampled(None, None), "acme", "power_w", None) is None


def used(*parts: float, power_w: float | None = None) -> Telemetry:
    samples = (
        Sample(time, "acme", "0", utilisation=part, power_w=power_w) for time, part in enumerate(parts)
    )
    return Telemetry("", samples=tuple(samples))


def load(idle: Telemetry, loaded: Telemetry) -> list[tuple[CheckOutcome, str]]:
    trouble = on_chip.load_trouble(idle, loaded, Window(1, 3), "acme")
    return [(check.outcome, check.detail) for check in trouble]


def test_a_device_that_shows_no_load_is_not_believed() -> None:
    assert load(used(0.1, 0.1, power_w=90.0), used(0.0, 0.9, 0.9, 0.9, power_w=300.0)) == []
    assert load(used(0.25, 0.25, power_w=90.0), used(0.9, 0.25, 0.25, 0.25, power_w=90.0)) == [
        (CheckOutcome.FAILED, "utilisation was 0.25 before the load and 0.25 under it"),
        (CheckOutcome.FAILED, "power_w was 90 before the load and 90 under it"),
    ]
    ((outcome, detail),) = load(used(0.1), used(0.0, 0.9, 0.9))
    assert outcome is CheckOutcome.NOT_PROVEN and "power_w" in detail
    ((outcome, detail),) = load(used(0.9), used(0.0, 0.9, 0.9))
    assert outcome is CheckOutcome.NOT_PROVEN and "in use before the load: 90%" in detail
