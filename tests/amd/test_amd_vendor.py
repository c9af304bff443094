"""The amd vendor: devices that are not well, and its chips."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from tests.vendors.recordings import recording
from utils.errors import FlagPerfError
from utils.loading import load_module

VENDOR = Path(__file__).parents[2] / "training" / "amd"


@pytest.fixture(scope="module")
def vendor() -> ModuleType:
    return load_module(VENDOR / "vendor.py", "amd_vendor_under_test")


def chips_of(vendor: ModuleType, devices: list[str]) -> set[str]:
    return {
        chip
        for device in devices
        for chip, about in vendor.CHIPS.items()
        if any(name in device for name in about["device_names"])
    }


@pytest.mark.parametrize(
    ("device", "chips"),
    [
        ("gfx90a, 104 CUs, PCI 0x740c", {"MI250"}),
        ("gfx90a, 110 CUs, PCI 0x7408", {"MI250X"}),
        ("gfx942, 304 CUs, PCI 0x74b5", {"MI300X"}),  # in a guest
        ("gfx942, 304 CUs, PCI 0x74a5", {"MI325X"}),
        ("gfx942, 38 CUs, PCI 0x74a1", set()),  # an eighth of an MI300X, with an eighth of its peak
        ("gfx950, 256 CUs, PCI 0x75a3", {"MI355X"}),
        ("gfx950, 32 CUs, PCI 0x75a3", set()),
    ],
)
def test_a_part_of_a_package_is_not_taken_for_the_package(
    vendor: ModuleType, device: str, chips: set[str]
) -> None:
    assert chips_of(vendor, [device]) == chips


def test_a_host_without_gpus_has_none(vendor: ModuleType) -> None:
    assert vendor.parse_device_list("") == []


@pytest.mark.parametrize(
    ("added", "message"),
    [
        ("grep: /sys/class/kfd: Operation not permitted", "is not understood: grep"),
        (
            "/sys/class/kfd/kfd/topology/nodes/9/properties:simd_count 1216",
            "GPU of topology node 9 has no gfx_",
        ),
    ],
)
def test_a_gpu_that_is_not_well_is_an_error_and_not_one_less(
    vendor: ModuleType, added: str, message: str
) -> None:
    with pytest.raises(FlagPerfError, match=message):
        vendor.parse_device_list(recording("amd", "kfd_mi210") + added)


def test_the_peaks_are_dense(vendor: ModuleType) -> None:
    for chip, about in vendor.CHIPS.items():
        peaks = about["peak_flops"]
        assert peaks["bf16"] == peaks["fp16"] < 2.6e15, chip
        assert peaks.get("fp8", 2 * peaks["bf16"]) == pytest.approx(2 * peaks["bf16"], rel=1e-3), chip
