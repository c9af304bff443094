"""The MTML monitor against a FAKE pymtml: there is no GPU here, so the fake stands at the library's boundary.

The fake is tests/fakes/mtml.py.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.fakes.mtml import FakeMtml
from utils.errors import FlagPerfError
from utils.loading import load_module
from utils.monitors.accelerators import describe_accelerators

VENDOR = Path(__file__).parents[2] / "training" / "mthreads"


@pytest.fixture
def mtml(monkeypatch: pytest.MonkeyPatch) -> FakeMtml:
    fake = FakeMtml()
    monkeypatch.setitem(sys.modules, "pymtml", fake)
    return fake


@pytest.fixture
def monitor() -> ModuleType:
    return load_module(VENDOR / "mthreads_monitor.py", "mthreads_monitor_under_test")


def test_a_gpu_is_sampled_in_the_records_units_and_all_is_closed_again(
    mtml: FakeMtml, monitor: ModuleType
) -> None:
    devices = monitor.open_devices()
    first, second = devices.sample(1_000)
    assert (first.device, second.device, first.source) == ("0", "1", "mthreads")
    assert (first.power_w, first.utilisation, first.temperature_c) == (96.66, 0.98, 47)
    assert (first.memory_used_mib, first.memory_total_mib, first.energy_mj) == (10, 81920, None)
    assert not first.error
    assert mtml.opened == ["library"]
    devices.close()
    assert mtml.opened == []


def test_a_sensor_that_the_gpu_has_not_is_not_measured_and_no_error(
    mtml: FakeMtml, monitor: ModuleType
) -> None:
    mtml.answers["mtmlGpuGetTemperature", 0] = FakeMtml.MTMLError_NotSupported("Not Supported")
    first, second = monitor.open_devices().sample(1_000)
    assert (first.temperature_c, first.power_w, first.error) == (None, 96.66, "")
    assert second.temperature_c == 47


def test_a_gpu_that_is_lost_says_so_and_the_others_are_sampled(mtml: FakeMtml, monitor: ModuleType) -> None:
    devices = monitor.open_devices()
    mtml.answers["mtmlLibraryInitDeviceByIndex", 0] = FakeMtml.MTMLError_GpuIsLost("Gpu Is Lost")
    first, second = devices.sample(1_000)
    assert first.error == "mtmlLibraryInitDeviceByIndex: Gpu Is Lost"
    assert first.power_w is None and first.utilisation is None
    assert second.power_w == 96.66


def test_a_query_that_fails_is_named_and_the_other_values_kept(mtml: FakeMtml, monitor: ModuleType) -> None:
    mtml.answers["mtmlMemoryGetUsed", 1] = FakeMtml.MTMLError("Unknown Error")
    _, second = monitor.open_devices().sample(1_000)
    assert second.error == "mtmlMemoryGetUsed: Unknown Error"
    assert (second.memory_used_mib, second.memory_total_mib, second.power_w) == (None, 81920, 96.66)
    assert mtml.opened == ["library"]


@pytest.mark.parametrize("milliwatts", [97, 0, 65_535_000])
def test_a_power_that_no_gpu_has_is_an_error_and_no_figure(
    mtml: FakeMtml, monitor: ModuleType, milliwatts: int
) -> None:
    """97: watts, where milliwatts are documented."""
    mtml.answers["mtmlDeviceGetPowerUsage", 0] = milliwatts
    first, _ = monitor.open_devices().sample(1_000)
    assert first.power_w is None
    assert first.error == f"mtmlDeviceGetPowerUsage: {milliwatts} mW cannot be the power of a GPU"


@pytest.mark.parametrize(
    "error", [FakeMtml.MTMLError("Driver Not Loaded"), OSError("libmtml.so.2: not there")]
)
def test_without_driver_or_library_the_reason_says_what_to_do(
    mtml: FakeMtml, monitor: ModuleType, error: Exception
) -> None:
    mtml.answers["mtmlLibraryInit", -1] = error
    with pytest.raises(FlagPerfError, match=f"MTML does not start: {error}") as caught:
        monitor.open_devices()
    assert "container toolkit" in caught.value.remedy


def test_without_the_module_the_reason_names_the_package(
    monitor: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pymtml", None)
    with pytest.raises(FlagPerfError, match="mthreads-ml-py"):
        monitor.open_devices()


def test_the_inventory_has_firmware_and_driver_of_each_gpu_and_does_not_end_the_samples(
    mtml: FakeMtml,
) -> None:
    mtml.answers["mtmlLibraryInitDeviceByIndex", 1] = FakeMtml.MTMLError_GpuIsLost("Gpu Is Lost")
    first, second = describe_accelerators(VENDOR)
    assert first == {
        "name": "MTT S5000",
        "vbios": "4.3.41",
        "pci_bus": "00000000:2a:00.0",
        "pcie_generation": 5,
        "pcie_width": 16,
        "memory_mib": 81920,
        "max_sm_mhz": 1750,
        "max_memory_mhz": 20000,
        "error": None,
        "driver": "5.2.0-server",
    }
    assert second == {"error": "mtmlLibraryInitDeviceByIndex: Gpu Is Lost", "driver": "5.2.0-server"}
    assert mtml.opened == ["library"]
