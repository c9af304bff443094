"""The mthreads vendor: its device list against what releases of mthreads-gmi printed."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from tests.vendors.recordings import recording, recordings_of
from utils.errors import FlagPerfError
from utils.loading import load_module

VENDOR = Path(__file__).parents[2] / "training" / "mthreads"
S5000 = "mthreads-gmi_2.4.1_S5000x8"
LISTED = {
    "mthreads-gmi_1.14.0_S4000x3": ["MTT S4000, 49152 MiB"] * 3,
    "mthreads-gmi_1.14.0_S80_busy": ["MTT S80, 16384 MiB"],
    "mthreads-gmi_2.0.0_S80_processes": ["MTT S80, 16384 MiB"],
    "mthreads-gmi_2.1.0_S4000_long_driver_version": ["MTT S4000, 49152 MiB"] * 3,
    "mthreads-gmi_2.3.2_S5000_in_use": ["MTT S5000, 81920 MiB"] * 3,
    S5000: ["MTT S5000, 81920 MiB"] * 8,
}
TROUBLE = {
    "mthreads-gmi_1.12.2_S4000_used_exceeds_total": "MTT S4000 uses 44302 of 32768 MiB: is the IOMMU off?",
    "mthreads-gmi_2.3.4_S3000_parent": "MTT S3000 is no physical device but: MPC Parent",
    "mthreads-gmi_2.3.4_S3000_virtual": "MTT S3000 MtvGPU-1101 is no physical device but: Virtual",
}


@pytest.fixture(scope="module")
def vendor() -> ModuleType:
    return load_module(VENDOR / "vendor.py", "mthreads_vendor_under_test")


def test_no_recording_is_left_out() -> None:
    assert recordings_of("mthreads") == {*LISTED, *TROUBLE}


@pytest.mark.parametrize(("name", "devices"), LISTED.items(), ids=list(LISTED))
def test_gpus_of_every_release_are_listed(vendor: ModuleType, name: str, devices: list[str]) -> None:
    assert vendor.parse_device_list(recording("mthreads", name)) == devices


@pytest.mark.parametrize(("name", "reason"), TROUBLE.items(), ids=list(TROUBLE))
def test_what_is_no_whole_gpu_is_trouble(vendor: ModuleType, name: str, reason: str) -> None:
    with pytest.raises(FlagPerfError) as caught:
        vendor.parse_device_list(recording("mthreads", name))
    assert caught.value.message == f"mthreads-gmi reports trouble: {reason}"


def test_a_host_without_gpus_has_none(vendor: ModuleType) -> None:
    assert vendor.parse_device_list("\n") == []


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        (
            "3    MTT S5000            |00000000:5c:00.0    |0%    0MiB(81920MiB)",
            "3    ERR!  |N/A",
            "3    ERR!",
        ),
        ("     Physical      P0     |16x(16x)            |50C   YES", "", "6    MTT S5000"),
        ("5    MTT S5000 ", "GPU 5 fell off the bus\n5    MTT S5000 ", "GPU 5 fell off the bus"),
    ],
)
def test_a_gpu_that_does_not_answer_is_an_error_and_not_one_gpu_less(
    vendor: ModuleType, old: str, new: str, shown: str
) -> None:
    printed = recording("mthreads", S5000)
    assert old in printed
    with pytest.raises(FlagPerfError, match=f"mthreads-gmi reports trouble: .*{shown}"):
        vendor.parse_device_list(printed.replace(old, new))


def test_words_without_a_table_are_trouble(vendor: ModuleType) -> None:
    words = "Error: the requested operation is not available on target device"
    with pytest.raises(FlagPerfError, match=f"reports trouble: {words}"):
        vendor.parse_device_list(words)
