"""Cambricon: device list and monitor against what cnmon printed."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from tests.vendors.recordings import recording, recordings_of
from utils.errors import FlagPerfError
from utils.loading import load_module
from utils.telemetry import Sample

VENDOR = Path(__file__).parents[2] / "training" / "cambricon"
INFO, MASKED, X4 = "info_5.10.22_two_cards", "5.10.31_x8_masked_550W_cap", "5.10.10_MLU370-X4_x2_exclusive"

# Name, total MiB, and C, W of each card, read by eye; all are idle.
TABLES = {
    "1.16.0_MLU220-M2_79_columns": ("MLU220-M2", 4096, [(51, 3.7)]),
    "4.20.11_MLU370-X4_x3_old_columns": ("MLU370-X4", 23308, [(32, 30), (33, 25), (30, 26)]),
    X4: ("MLU370-X4", 23308, [(41, 27), (41, 27)]),
    "5.10.13_MLU370-X8_x2": ("MLU370-X8", 23374, [(32, 106), (39, 106)]),
    "5.10.22_MLU370-X8_x2_FULL": ("MLU370-X8", 20638, [(28, 107), (32, 107)]),
}
MASKED_CARDS = [(35, 105), (34, 100), (35, 100), (34, 109), (34, 107), (33, 105), (36, 102), (33, 105)]


@pytest.fixture(scope="module")
def vendor() -> ModuleType:
    return load_module(VENDOR / "vendor.py", "cambricon_vendor_under_test")


@pytest.fixture(scope="module")
def monitor() -> ModuleType:
    return load_module(VENDOR / "cambricon_monitor.py", "cambricon_monitor_under_test")


def sample(heat: float, watts: float, total: float | None, used: float = 0, error: str = "") -> Sample:
    return Sample(0, "", utilisation=0, power_w=watts, memory_used_mib=used, memory_total_mib=total,
                  temperature_c=heat, error=error)  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_the_cards_are_listed_and_sampled(vendor: ModuleType, monitor: ModuleType, name: str) -> None:
    chip, total, rows = TABLES[name]
    assert vendor.parse_device_list(recording("cambricon", name)) == [f"{chip}, {total} MiB"] * len(rows)
    used = 967 if chip == "MLU220-M2" else 0
    expected = {str(number): sample(*row, total, used) for number, row in enumerate(rows)}
    assert monitor.parse(recording("cambricon", name)) == expected


def test_what_a_page_has_masked_is_no_measurement(vendor: ModuleType, monitor: ModuleType) -> None:
    text = recording("cambricon", MASKED)
    error = "total of xxxxx MiB is no measurement"
    assert list(monitor.parse(text).values()) == [sample(*row, None, error=error) for row in MASKED_CARDS]
    assert vendor.parse_device_list(text) == ["MLUXXX-XX, xxxxx MiB"] * 8


def test_every_recording_is_read() -> None:
    assert recordings_of("cambricon") == {*TABLES, MASKED, INFO}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (recording("cambricon", INFO), "reports trouble: Processes"),  # of `cnmon info`
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


def test_the_inventory_has_firmware_driver_and_limits_of_both_kinds_of_table(monitor: ModuleType) -> None:
    new, _ = monitor.describe(recording("cambricon", X4))
    assert new == {
        "name": "MLU370-X4", "firmware": "v1.1.6", "driver": "v5.10.10", "pci_bus": "0000:1B:00.0",
        "memory_mib": 23308, "power_limit_w": 150, "mode": "Exclusive",
    }  # fmt: skip
    old, *_ = monitor.describe(recording("cambricon", "4.20.11_MLU370-X4_x3_old_columns"))
    assert (old["driver"], old["pci_bus"], old["mode"]) == ("v4.20.11", None, None)


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
