"""The hygon vendor: its device list against recorded output of hy-smi."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from tests.vendors.recordings import recording
from utils.errors import FlagPerfError
from utils.loading import load_module

VENDOR = Path(__file__).parents[2] / "training" / "hygon"
RENAMED = "k100ai_json_driver6.3.13_vendor_renamed"


@pytest.fixture(scope="module")
def vendor() -> ModuleType:
    return load_module(VENDOR / "vendor.py", "hygon_vendor_under_test")


@pytest.mark.parametrize(
    ("stdout", "devices"),
    [
        ("some line of text\n" + recording("hygon", RENAMED), ["K100_AI, PCI 0x6210"]),
        ('{"card1": {"Device ID": "0x62B7", "Card Series": " "}}', ["without a name, PCI 0x62b7"]),
        ('{"card10": {"Device ID": "0x2"}, "card2": {"Device ID": "0x1"}, "system": {}}', [
            "without a name, PCI 0x1", "without a name, PCI 0x2",
        ]),
        ("", []),
    ],
)  # fmt: skip
def test_cards_are_told_by_their_pci_id(vendor: ModuleType, stdout: str, devices: list[str]) -> None:
    assert vendor.parse_device_list(stdout) == devices


@pytest.mark.parametrize(
    ("device", "chip"), [("0x62b7", "K100"), ("0x6210", "K100_AI"), ("0x631a", "BW1000")]
)
def test_each_chip_is_told_from_the_others(vendor: ModuleType, device: str, chip: str) -> None:
    (name,) = vendor.parse_device_list(f'{{"card0": {{"Device ID": "{device}"}}}}')
    assert [chip] == [
        chip for chip, about in vendor.CHIPS.items() if any(part in name for part in about["device_names"])
    ]


@pytest.mark.parametrize(
    ("stdout", "message"),
    [
        ("failed to check docker container", "no JSON, but: failed to check docker container"),
        ('{"card0": {"Device ID": "0x6210"}, "card1": {"Device ID": "N/A"}}', "card1 has no Device ID"),
        ('{"card0": {', "hy-smi reports trouble: Expecting"),
    ],
)
def test_a_card_that_is_not_well_is_an_error_and_not_one_less(
    vendor: ModuleType, stdout: str, message: str
) -> None:
    with pytest.raises(FlagPerfError, match=message):
        vendor.parse_device_list(stdout)


def test_no_chip_has_a_peak_that_nobody_publishes(vendor: ModuleType) -> None:
    assert not any(about["peak_flops"] for about in vendor.CHIPS.values())
