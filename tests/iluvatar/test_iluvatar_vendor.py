"""The iluvatar vendor: its device list against changed recordings of ixsmi."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from tests.vendors.recordings import recording
from utils.errors import FlagPerfError
from utils.loading import load_module

VENDOR = Path(__file__).parents[2] / "training" / "iluvatar"


@pytest.fixture(scope="module")
def vendor() -> ModuleType:
    return load_module(VENDOR / "vendor.py", "iluvatar_vendor_under_test")


def test_a_host_without_devices_has_none(vendor: ModuleType) -> None:
    assert vendor.parse_device_list("\n") == []


def test_a_device_that_fell_off_is_an_error_though_it_is_listed(vendor: ModuleType) -> None:
    heading = recording("iluvatar", "ixsmi_3.0.1_renumbered").partition("| 0    Iluvatar")[0]
    with pytest.raises(FlagPerfError, match=r"ixsmi reports trouble: 5    Iluvatar BI-V100 .* 65535W / 250"):
        vendor.parse_device_list(heading + recording("iluvatar", "ixsmi_3.0.1_fallen_off"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("40C   P0    N/A / N/A ", "0C    P0    N/A / N/A "),
        ("64MiB / 32768MiB ", "N/A / N/A        "),
        ("| 0    Ilu", "| ERR! Ilu"),
    ],
)
def test_a_device_that_does_not_answer_is_an_error_and_not_one_device_less(
    vendor: ModuleType, old: str, new: str
) -> None:
    printed = recording("iluvatar", "ixsmi_4.3.8_BI-V150x2_fan_NA")
    assert old in printed
    with pytest.raises(FlagPerfError, match="ixsmi reports trouble"):
        vendor.parse_device_list(printed.replace(old, new))


def test_words_without_a_table_are_trouble(vendor: ModuleType) -> None:
    with pytest.raises(FlagPerfError, match="reports trouble: there is no table headed 'Bus-Id'"):
        vendor.parse_device_list("Failed to initialize IXML: driver not loaded\n")
