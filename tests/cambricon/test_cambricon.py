"""Cambricon: device list and monitor against changed recordings of cnmon."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from tests.vendors.recordings import recording
from utils.errors import FlagPerfError
from utils.loading import load_module
from utils.telemetry import Sample

VENDOR = Path(__file__).parents[2] / "training" / "cambricon"
X4 = "5.10.10_MLU370-X4_x2_exclusive"


@pytest.fixture(scope="module")
def vendor() -> ModuleType:
    return load_module(VENDOR / "vendor.py", "cambricon_vendor_under_test")


@pytest.fixture(scope="module")
def monitor() -> ModuleType:
    return load_module(VENDOR / "cambricon_monitor.py", "cambricon_monitor_under_test")


def sample(heat: float, watts: float, total: float) -> Sample:
    return Sample(
        0, "", utilisation=0, power_w=watts, memory_used_mib=0, memory_total_mib=total, temperature_c=heat
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("No MLU devices found\n", "reports trouble: No MLU devices found"),
        (
            recording("cambricon", X4).partition("|  0%   41C         27 W/ 150 W")[0],
            "ends within a device",
        ),
        (recording("cambricon", X4).replace("| 0     /", "| ERR   /"), "reports trouble: ERR"),
        (recording("cambricon", X4).replace("| 0     /", "| 2     /"), "does not list card 0"),
    ],
)
def test_trouble_is_an_error_and_not_a_card_less(vendor: ModuleType, text: str, message: str) -> None:
    with pytest.raises(FlagPerfError, match=message):
        vendor.parse_device_list(text)


def test_a_host_without_output_lists_nothing(vendor: ModuleType) -> None:
    assert vendor.parse_device_list("\n") == []


@pytest.mark.parametrize(
    ("cell", "new", "field", "error"),
    [
        (" 41C ", " N/A ", "temperature_c", ""),
        (" 41C ", "  0C ", "temperature_c", "Temp of 0C is no measurement"),
        ("  27 W/ 150 W", "  N/A/ 150 W", "power_w", ""),
        ("27 W/ 150 W", " 0 W/ 150 W", "power_w", "Pwr:Usage of 0 W is no measurement"),
        ("   27 W/ 150 W", "65535 W/ 150 W", "power_w", "Pwr:Usage of 65535 W is no measurement"),
        ("| 0%                N/A", "| N/A               N/A", "utilisation", ""),
    ],
)
def test_what_is_not_measured_is_none_and_what_cannot_be_is_an_error(
    monitor: ModuleType, cell: str, new: str, field: str, error: str
) -> None:
    first, second = monitor.parse(recording("cambricon", X4).replace(cell, new, 1)).values()
    assert (getattr(first, field), first.error) == (None, error)
    assert second == sample(41, 27, 23308)


def test_the_use_of_a_busy_card_is_a_part_of_one(monitor: ModuleType) -> None:
    """Made up: every recording is of idle cards."""
    text = recording("cambricon", X4).replace("| 0%                N/A", "| 37%               N/A", 1)
    assert [each.utilisation for each in monitor.parse(text).values()] == [0.37, 0]


@pytest.mark.parametrize(
    ("line", "chips"),
    [
        ("MLU590-M9, 98304 MiB", ["MLU590M9"]),
        ("MLU590-M9DG, 81920 MiB", ["MLU590M9DG"]),
        ("MLU590-M9D, 81920 MiB", []),
        ("MLU590-M9U, 98304 MiB", []),
    ],
)
def test_a_chip_is_known_by_its_whole_name(vendor: ModuleType, line: str, chips: list[str]) -> None:
    assert chips == [
        chip for chip, about in vendor.CHIPS.items() if any(name in line for name in about["device_names"])
    ]
