"""The trial: whole ones of two vendors without their chips, and what it says where it cannot be made."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from run_benchmarks.conformance import on_chip, trial
from run_benchmarks.conformance.records import Check, Options, Outcome
from run_benchmarks.plan.vendor_record import Chip
from utils.telemetry.records import Sample, Telemetry, Window

TRAINING = Path(__file__).resolve().parents[3] / "training"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("vendor", "device", "sampled"),
    [
        ("ascend", "npu", Outcome.NOT_PROVEN),  # by a plug-in; sampled by a library of C, which is not here
        ("kunlunxin", "standin", Outcome.PASSED),  # poses as cuda; sampled by its tool
    ],
)
def test_a_vendor_is_tried_without_its_chip(vendor: str, device: str, sampled: Outcome) -> None:
    checks = list(trial.checks(TRAINING / vendor, Options(Path(sys.executable))))
    outcomes = {check.name: check.outcome for check in checks}
    assert outcomes.pop("monitor") is sampled
    assert len(outcomes) == 7 and set(outcomes.values()) == {Outcome.PASSED}, checks
    details = {check.name: check.detail for check in checks}
    assert f"{device}:0" in details["device"]
    assert "allreduce" in details["collectives"]
    assert ("cuda" in details["device"]) == (vendor == "kunlunxin")


def test_a_python_without_a_framework_proves_nothing(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho torch h5py\n")
    python.chmod(0o755)
    (check,) = trial.checks(TRAINING / "ascend", Options(python))
    assert (check.outcome, check.detail) == (Outcome.NOT_PROVEN, "this Python lacks torch, h5py")
    assert "--python" in check.remedy
    (check,) = trial.checks(TRAINING / "ascend", Options(tmp_path / "none"))
    assert check.outcome is Outcome.NOT_PROVEN and "does not answer" in check.detail


def chip(memory_gib: float | None) -> Chip:
    return Chip("A1", ("A1",), memory_gib, {}, {"": "a test"})


def of_memory(chip: Chip, **bytes_by_name: float) -> list[Check]:
    facts = {f"mem_{name}_bytes": value for name, value in bytes_by_name.items()}
    return list(on_chip.memory_trouble(facts, chip))


def test_memory_is_the_chips() -> None:
    gib = 2.0**30
    assert of_memory(chip(64.0), total=63 * gib, reserved=20 * gib) == []
    (check,) = of_memory(chip(32.0), total=63 * gib, reserved=20 * gib)
    assert check.outcome is Outcome.FAILED and "63.00 GiB, CHIPS says 32" in check.detail
    (check,) = of_memory(chip(64.0), total=63 * gib, reserved=70 * gib)
    assert check.outcome is Outcome.FAILED
    (check,) = of_memory(chip(None), total=63 * gib, reserved=20 * gib)
    assert check.outcome is Outcome.NOT_PROVEN
    (check,) = of_memory(chip(64.0))
    assert check.outcome is Outcome.NOT_PROVEN


def sampled(*powers: float | None) -> Telemetry:
    return Telemetry(
        "", samples=tuple(Sample(time, "acme", str(time % 2), power_w=w) for time, w in enumerate(powers))
    )


def test_under_load_the_device_that_works_counts() -> None:
    assert on_chip.highest_mean(sampled(10.0, 90.0, 20.0, 110.0), "acme", "power_w", None) == 100.0
    window = Window(2, 3)
    assert on_chip.highest_mean(sampled(10.0, 90.0, 20.0, 110.0), "acme", "power_w", window) == 110.0
    assert on_chip.highest_mean(sampled(None, None), "acme", "power_w", None) is None
