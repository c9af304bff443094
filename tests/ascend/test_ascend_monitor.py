"""The DCMI monitor against a FAKE library: there is no NPU here. The fake is tests/fakes/dcmi.py."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.fakes.dcmi import MCU, NPU, FakeDcmi
from utils.errors import FlagPerfError
from utils.loading import load_module

VENDOR = Path(__file__).parents[2] / "training" / "ascend"


@pytest.fixture(scope="module")
def monitor() -> ModuleType:
    return load_module(VENDOR / "ascend_monitor.py", "ascend_monitor_under_test")


def opened(monitor: ModuleType, library: FakeDcmi, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(monitor, "_load", lambda: library)
    return monitor.open_devices()


@pytest.fixture
def board() -> FakeDcmi:
    """Two cards with a chip and its controller each."""
    return FakeDcmi({0: [NPU, MCU], 5: [NPU, MCU]})


def test_a_chip_is_sampled_in_the_records_units(
    monitor: ModuleType, board: FakeDcmi, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = opened(monitor, board, monkeypatch).sample(1_000)
    assert (first.time_ms, first.source, first.device, second.device) == (1_000, "ascend", "0", "1")
    assert (first.power_w, first.utilisation, first.temperature_c) == (101.3, 0.93, 47)
    assert (first.memory_used_mib, first.memory_total_mib) == (3432, 65536)
    assert (first.energy_mj, first.error) == (None, "")


def test_the_power_of_a_card_with_two_chips_is_counted_once(
    monitor: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples = opened(monitor, FakeDcmi({0: [NPU, NPU], 1: [NPU, NPU, MCU]}), monkeypatch).sample(0)
    carriers = [(sample.power_w, sample.power_on) for sample in samples]
    assert carriers == [(101.3, None), (None, "0"), (101.3, None), (None, "2")]
    assert not any(sample.error for sample in samples)


@pytest.mark.parametrize(
    ("function", "answer", "field", "error"),
    [
        ("dcmi_get_device_power_info", -8255, "power_w", ""),
        ("dcmi_get_device_power_info", -8012, "power_w", "power_info: -8012 (the device is not ready)"),
        ("dcmi_get_device_power_info", 0, "power_w", "power of 0 is no measurement"),
        ("dcmi_get_device_power_info", 655350, "power_w", "power of 65535 is no measurement"),
        ("dcmi_get_device_temperature", 0, "temperature_c", "temperature of 0 is no measurement"),
        ("dcmi_get_device_hbm_info", -8008, "memory_used_mib", "-8008 (the device does not exist)"),
        ("dcmi_get_device_utilization_rate", -9999, "utilisation", "utilization_rate: -9999"),
    ],
)
def test_what_is_not_measured_is_none_and_a_failure_named(
    monitor: ModuleType,
    board: FakeDcmi,
    monkeypatch: pytest.MonkeyPatch,
    function: str,
    answer: int,
    field: str,
    error: str,
) -> None:
    devices = opened(monitor, board, monkeypatch)
    board.answers[function, 5, 0] = answer
    well, ill = devices.sample(0)
    assert getattr(ill, field) is None and error in ill.error and bool(ill.error) == bool(error)
    assert getattr(well, field) is not None and not well.error


def test_the_inventory_has_chip_cores_memory_and_driver(
    monitor: ModuleType, board: FakeDcmi, monkeypatch: pytest.MonkeyPatch
) -> None:
    board.answers["dcmi_get_device_hbm_info", 5, 0] = -8008
    first, second = opened(monitor, board, monkeypatch).describe()
    assert first == {
        "name": "910B2", "npu_name": None, "chip_version": "V1", "ai_cores": 24, "card": 0,
        "memory_mib": 65536, "health": 0, "error": None, "driver": "25.5.1",
    }  # fmt: skip
    assert (second["card"], second["memory_mib"]) == (5, None) and "-8008" in second["error"]


def test_why_it_does_not_start_is_said(
    monitor: ModuleType, board: FakeDcmi, monkeypatch: pytest.MonkeyPatch
) -> None:
    board.started = -8005
    with pytest.raises(FlagPerfError, match=r"dcmi_init: -8005 \(driver not ready") as caught:
        opened(monitor, board, monkeypatch)
    assert "HwHiAiUser" in caught.value.remedy
    with pytest.raises(FlagPerfError, match="lists no NPU"):
        opened(monitor, FakeDcmi({}), monkeypatch)
    monkeypatch.undo()
    with pytest.raises(FlagPerfError, match=r"libdcmi\.so cannot be loaded"):
        monitor.open_devices()


def test_the_structures_have_the_librarys_layout(monitor: ModuleType) -> None:
    """By the C rules of a 64-bit machine, of which both driver builds are."""
    assert (monitor.HbmInfo.memory_usage.offset, monitor.ctypes.sizeof(monitor.HbmInfo)) == (16, 32)
    assert (monitor.ChipInfo.aicore_cnt.offset, monitor.ctypes.sizeof(monitor.ChipInfo)) == (96, 132)
