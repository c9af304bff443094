"""Kunlunxin: device list and monitor against changed recordings of xpu-smi."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from tests.vendors.recordings import recording
from utils.errors import FlagPerfError
from utils.loading import load_module
from utils.telemetry import Sample

VENDOR = Path(__file__).parents[2] / "training" / "kunlunxin"
LIST, OLD = "list_P800_x8", "4.0_R300_x2"
TOTAL = 98304.0


@pytest.fixture(scope="module")
def vendor() -> ModuleType:
    return load_module(VENDOR / "vendor.py", "kunlunxin_vendor_under_test")


@pytest.fixture(scope="module")
def monitor() -> ModuleType:
    return load_module(VENDOR / "kunlunxin_monitor.py", "kunlunxin_monitor_under_test")


def sample(heat: float, watts: float, used: float) -> Sample:
    return Sample(0, "", utilisation=0, power_w=watts, memory_used_mib=used, memory_total_mib=TOTAL,
                  temperature_c=heat)  # fmt: skip


def test_another_card_is_listed_too_and_a_host_without_cards_has_none(vendor: ModuleType) -> None:
    assert vendor.parse_device_list("XPU 0: P800 PCIe  GPU-1\n") == ["XPU 0: P800 PCIe"]
    assert vendor.parse_device_list("") == []


def test_a_line_that_is_no_card_and_a_card_that_is_missing_are_errors(vendor: ModuleType) -> None:
    lines = recording("kunlunxin", LIST).splitlines()
    with pytest.raises(FlagPerfError, match="does not list XPU 3"):
        vendor.parse_device_list("\n".join(lines[:3] + lines[4:]))
    with pytest.raises(FlagPerfError, match="reports trouble: Failed to initialize"):
        vendor.parse_device_list("Failed to initialize: driver not loaded\n")


@pytest.mark.parametrize(
    ("cell", "new", "field", "error"),
    [
        ("38C", "N/A", "temperature_c", ""),
        ("38C", " 0C", "temperature_c", "Temp of 0C is no measurement"),
        ("   85W", "   N/A", "power_w", ""),
        ("   85W", "65535W", "power_w", "Pwr:Usage of 65535W is no measurement"),
        ("   85W", "  ERR!", "power_w", "Pwr:Usage of ERR! is no measurement"),
        ("     0MiB / 98304MiB |      0%", "     0MiB / 98304MiB |     N/A", "utilisation", ""),
    ],
)
def test_what_is_not_measured_is_none_and_what_cannot_be_is_an_error(
    monitor: ModuleType, cell: str, new: str, field: str, error: str
) -> None:
    text = recording("kunlunxin", "5.0.21.26_P800_OAM_x8").replace(cell, new, 1)
    first, second, *_ = monitor.parse(text).values()
    assert (getattr(first, field), first.error) == (None, error)
    assert second == sample(40, 84, 0)


def test_the_use_of_a_busy_card_is_a_part_of_one(monitor: ModuleType) -> None:
    """Made up: every recording is of idle cards."""
    text = recording("kunlunxin", "5.0.21.26_P800_OAM_x8").replace(
        "|      0%      Default", "|     37%      Default", 1
    )
    assert [each.utilisation for each in monitor.parse(text).values()] == [0.37, *[0] * 7]


def test_another_table_is_refused(monitor: ModuleType) -> None:
    for text in (recording("kunlunxin", OLD), "", "no device\n"):
        with pytest.raises(ValueError, match="there is no table headed"):
            monitor.parse(text)
    table = recording("kunlunxin", "5.0.21.26_P800_OAM_x8")
    with pytest.raises(ValueError, match="no column is headed"):
        monitor.parse(table.replace("XPU-Util", "ECC-Util"))
    with pytest.raises(ValueError, match="ends within a device"):
        monitor.parse(table.partition("| N/A   40C")[0])
    with pytest.raises(KeyError, match="Temp"):
        monitor.parse(table.replace("Fan  Temp", "Fan  Heat"))
