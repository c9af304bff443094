"""The intel vendor: its device list against lines of lspci."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from utils.errors import FlagPerfError
from utils.loading import load_module

VENDOR = Path(__file__).parents[2] / "training" / "intel"
MAX_1100 = "0000:29:00.0 Display controller [0380]: Intel Corporation Device [8086:0bda] (rev 2f)\n"
GONE = "0000:3a:00.0 Display controller [0380]: Intel Corporation Ponte Vecchio 1T [8086:0bd5] (rev ff)"


@pytest.fixture(scope="module")
def vendor() -> ModuleType:
    return load_module(VENDOR / "vendor.py", "intel_vendor_under_test")


def chips_of(vendor: ModuleType, devices: list[str]) -> list[str]:
    return [
        chip
        for device in devices
        for chip, about in vendor.CHIPS.items()
        if any(name in device for name in about["device_names"])
    ]


def test_other_cards_are_themselves(vendor: ModuleType) -> None:
    assert chips_of(vendor, vendor.parse_device_list(MAX_1100)) == ["Max1100"]
    flex = "0000:b3:00.0 Display controller [0380]: Intel Corporation Device [8086:56c0] (rev 08)\n"
    assert vendor.parse_device_list(flex) == ["Device, PCI 8086:56c0, stack 0"]
    assert chips_of(vendor, vendor.parse_device_list(flex)) == []
    virtual = vendor.parse_device_list(MAX_1100.replace("00.0", "00.1"))
    assert virtual == ["Device, PCI 8086:0bda, virtual function"]
    assert chips_of(vendor, virtual) == []


def test_a_host_without_cards_has_none(vendor: ModuleType) -> None:
    assert vendor.parse_device_list("") == []


@pytest.mark.parametrize("line", [GONE, "pcilib: Cannot open /proc/bus/pci"])
def test_a_card_that_fell_off_the_bus_is_an_error_and_not_one_less(vendor: ModuleType, line: str) -> None:
    with pytest.raises(FlagPerfError, match="lspci reports trouble") as caught:
        vendor.parse_device_list(MAX_1100 + line)
    assert line in caught.value.message


def test_no_chip_has_a_peak_that_sources_contradict(vendor: ModuleType) -> None:
    assert not any(about["peak_flops"] for about in vendor.CHIPS.values())
