"""The mthreads vendor: its device list against changed recordings of mthreads-gmi."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from tests.vendors.recordings import recording
from utils.errors import FlagPerfError
from utils.loading import load_module

VENDOR = Path(__file__).parents[2] / "training" / "mthreads"
S5000 = "mthreads-gmi_2.4.1_S5000x8"


@pytest.fixture(scope="module")
def vendor() -> ModuleType:
    return load_module(VENDOR / "vendor.py", "mthreads_vendor_under_test")


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
