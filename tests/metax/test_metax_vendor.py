"""The metax vendor: its device list against changed recordings of `mx-smi -L`."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from tests.vendors.recordings import recording
from utils.errors import FlagPerfError
from utils.loading import load_module

VENDOR = Path(__file__).parents[2] / "training" / "metax"
SLICE = "  SGPU#3   25% 15.625gb   Available (UUID: GPU-1) sgpu-1786493570\n"


@pytest.fixture(scope="module")
def vendor() -> ModuleType:
    return load_module(VENDOR / "vendor.py", "metax_vendor_under_test")


def test_a_name_of_two_words_is_one_name(vendor: ModuleType) -> None:
    line = "GPU#0    MetaX C550      0000:08:00.0   Available (UUID: GPU-1)\n"
    assert vendor.parse_device_list(line) == ["MetaX C550, Available"]


@pytest.mark.parametrize("stdout", ["", "mx-smi  version: 2.2.9\n\n"])
def test_a_host_without_gpus_has_none(vendor: ModuleType, stdout: str) -> None:
    assert vendor.parse_device_list(stdout) == []


def test_a_slice_of_a_gpu_is_no_gpu(vendor: ModuleType) -> None:
    with pytest.raises(FlagPerfError, match=r"mx-smi reports trouble: SGPU#3 .*") as caught:
        vendor.parse_device_list(SLICE)
    assert "slices" in caught.value.remedy


def test_a_gpu_that_is_not_available_is_an_error_and_not_one_gpu_less(vendor: ModuleType) -> None:
    printed = recording("metax", "mx-smi_2.2.12_list_not_available")
    whole = "".join(line for line in printed.splitlines(keepends=True) if "SGPU" not in line)
    with pytest.raises(FlagPerfError, match=r"reports trouble: GPU#1 .* Not Available\(MetaX Sysfs File"):
        vendor.parse_device_list(whole)


@pytest.mark.parametrize("line", ["mx-smi: cannot open the driver", "GPU#0 reset Sysfs error: Read-only"])
def test_a_line_that_is_no_gpu_is_trouble(vendor: ModuleType, line: str) -> None:
    with pytest.raises(FlagPerfError, match=f"mx-smi reports trouble: {line}"):
        vendor.parse_device_list(recording("metax", "mx-smi_2.2.9_list") + line)
