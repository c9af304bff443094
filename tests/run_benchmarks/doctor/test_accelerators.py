"""What vendors' own tools say of a host's devices, from recordings of what they printed."""

from __future__ import annotations

import json

import pytest

from run_benchmarks.doctor.accelerators import accelerators
from run_benchmarks.plan.problems import Problems
from run_benchmarks.plan.records import Plan
from run_benchmarks.plan.vendor_record import Vendor
from run_benchmarks.plan.vendors import read_vendor
from run_benchmarks.stages.checks import Check, Status
from tests.fakes.transports import AnsweringHost
from tests.run_benchmarks.doctor.examined import judge, patient_of, plan_of
from tests.run_benchmarks.whole_run import REAL_TRAINING
from utils.loading import load_module

PENDING = (REAL_TRAINING / "nvidia/recordings/smi_510.73_A100_remapping_pending.txt").read_text()
LISTED = "NVIDIA A100-SXM4-80GB, 81920 MiB\n"


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    return plan_of(tmp_path_factory.mktemp("plan"))


def vendor_of(name: str) -> Vendor:
    vendor = read_vendor(name, REAL_TRAINING, "", "", Problems())
    assert vendor
    return vendor


def of_nvidia(plan: Plan, code: int, printed: str) -> Check:
    host = AnsweringHost({"nvidia-smi --query-gpu": (0, LISTED, ""), "nvidia-smi -q": (code, printed, "")})
    return judge(accelerators, plan, patient_of(transport=host, vendors=(vendor_of("nvidia"),)))


def test_memory_that_fails_is_told_before_a_run(plan: Plan) -> None:
    pending = of_nvidia(plan, 0, PENDING)
    assert pending.status is Status.WARNING
    assert "device 0: the remapping of a row is pending: reset the GPU" in pending.detail
    assert pending.facts["nvidia driver"] == "510.73.08"
    assert pending.facts["nvidia devices"] == "1 x NVIDIA A100-SXM4-80GB, 81920 MiB"
    failed = of_nvidia(plan, 0, PENDING.replace("Occurred        : No", "Occurred        : Yes"))
    assert failed.status is Status.ERROR and "a row could not be remapped" in failed.detail
    good = of_nvidia(plan, 0, PENDING.replace(": Yes", ": No"))
    assert good.status is Status.OK
    assert good.detail == "1 x NVIDIA A100-SXM4-80GB, 81920 MiB, driver 510.73.08"
    faulty = PENDING.replace(": Yes", ": No").replace(
        "DRAM Uncorrectable            : 0", "DRAM Uncorrectable : 3", 1
    )
    wrong = of_nvidia(plan, 0, faulty)
    assert wrong.status is Status.WARNING and "3 uncorrectable ECC errors" in wrong.detail


def test_a_tool_that_fails_is_a_doubt(plan: Plan) -> None:
    check = of_nvidia(
        plan, 9, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
    )
    assert check.status is Status.WARNING and "couldn't communicate" in check.detail


def test_what_it_prints_may_be_anything(plan: Plan) -> None:
    check = of_nvidia(plan, 0, "GPU 0:\n  Product Name : \x1b[2J" + "x" * 10**5 + "\n" * 1000)
    assert check.status is Status.OK
    assert all(str(value).isprintable() for value in check.facts.values())


def test_no_device_is_a_doubt(plan: Plan) -> None:
    host = AnsweringHost({"nvidia-smi": (0, "No devices were found\n", "")})
    check = judge(accelerators, plan, patient_of(transport=host, vendors=(vendor_of("nvidia"),)))
    assert (check.status, check.detail) == (Status.WARNING, "none; no device of nvidia")


def test_the_command_is_that_of_which_the_inventory_is_read() -> None:
    vendors = set()
    for recording in REAL_TRAINING.glob("*/recordings/*.json"):
        content = json.loads(recording.read_text())
        if "inventory" in content:
            vendor = recording.parents[1]
            monitor = load_module(vendor / f"{vendor.name}_monitor.py", "monitor_of_a_test")
            assert " ".join(monitor.DESCRIBE_COMMAND) == content["command"]
            vendors.add(vendor.name)
    assert vendors == {"cambricon", "iluvatar", "kunlunxin", "metax", "nvidia"}
