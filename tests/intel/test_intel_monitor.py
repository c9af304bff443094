"""The Sysman monitor against a FAKE pyzes (tests/fakes/pyzes.py): there is no GPU here."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest

from tests.fakes.pyzes import FORBIDDEN, LOST, UNSUPPORTED, FakePyzes
from utils.errors import FlagPerfError
from utils.loading import load_module
from utils.telemetry import Sample

VENDOR = Path(__file__).parents[2] / "training" / "intel"


@pytest.fixture
def zes(monkeypatch: pytest.MonkeyPatch) -> FakePyzes:
    fake = FakePyzes()
    monkeypatch.setitem(sys.modules, "pyzes", fake)
    return fake


@pytest.fixture(scope="module")
def monitor() -> ModuleType:
    return load_module(VENDOR / "intel_monitor.py", "intel_monitor_under_test")


def after_two_seconds(zes: FakePyzes, monitor: ModuleType) -> Sequence[Sample]:
    devices = monitor.open_devices()
    devices.sample(1_000)
    zes.seconds = 2
    samples: Sequence[Sample] = devices.sample(3_000)
    return samples


def test_a_card_is_sampled_once_with_the_power_of_the_whole_card(zes: FakePyzes, monitor: ModuleType) -> None:
    first, second = after_two_seconds(zes, monitor)
    assert (first.source, first.device, second.device, first.error) == ("intel", "0", "1", "")
    assert first.energy_mj == pytest.approx(5_000_000 + 2 * 281_130)
    assert first.power_w == pytest.approx(281.13)
    assert first.utilisation == pytest.approx((0.25 + 0.5) / 2)
    assert (first.memory_used_mib, first.memory_total_mib) == (2 * 1024, 2 * 65536)
    assert first.temperature_c == 38.5  # of the hotter stack, and not of the memory


def test_the_first_sample_has_no_growth(zes: FakePyzes, monitor: ModuleType) -> None:
    first, _ = monitor.open_devices().sample(1_000)
    assert (first.power_w, first.utilisation, first.energy_mj) == (None, None, 5_000_000)


@pytest.mark.parametrize(
    ("query", "handle", "code", "field"),
    [
        ("zesDeviceEnumEngineGroups", 1, UNSUPPORTED, "utilisation"),  # Max 1550: intel/xpumanager issue 98
        ("zesEngineGetActivity", 1, UNSUPPORTED, "utilisation"),
        ("zesTemperatureGetState", 1, FORBIDDEN, "temperature_c"),
        ("zesDeviceEnumPowerDomains", 1, UNSUPPORTED, "energy_mj"),
    ],
)
def test_what_a_card_does_not_tell_is_not_measured_and_no_error(
    zes: FakePyzes, monitor: ModuleType, query: str, handle: int, code: int, field: str
) -> None:
    zes.answers[query, handle] = code
    first, second = after_two_seconds(zes, monitor)
    assert (getattr(first, field), first.error) == (None, "")
    assert getattr(second, field) is not None
    assert first.memory_total_mib == 131072


def test_a_lost_card_says_so_and_the_others_are_sampled(zes: FakePyzes, monitor: ModuleType) -> None:
    for query in ("PowerGetEnergyCounter", "EngineGetActivity", "MemoryGetState", "TemperatureGetState"):
        zes.answers[f"zes{query}", 1] = LOST
    first, second = after_two_seconds(zes, monitor)
    assert first.error.startswith("zesPowerGetEnergyCounter: 0x70000001; zesMemoryGetState: 0x70000001")
    assert first.energy_mj is None and first.memory_used_mib is None
    assert (second.power_w, second.error) == (pytest.approx(281.13), "")


def test_a_card_that_is_lost_at_the_start_says_so_in_each_sample(zes: FakePyzes, monitor: ModuleType) -> None:
    zes.answers["zesDeviceEnumMemoryModules", 2] = LOST
    first, second = after_two_seconds(zes, monitor)
    assert (first.error, second.error) == ("", "zesDeviceEnumMemoryModules: 0x70000001")


@pytest.mark.parametrize(
    ("query", "handle", "given", "error"),
    [
        ("zesTemperatureGetState", 1, {"value": 0.0}, "a temperature of 0 C"),
        ("zesPowerGetEnergyCounter", 104, {"timestamp": 10}, ""),  # its time stands still
        ("zesPowerGetEnergyCounter", 104, {"energy": 4_000_000_000}, ""),  # begun anew and stands
    ],
)
def test_what_cannot_be_is_no_reading(
    zes: FakePyzes, monitor: ModuleType, query: str, handle: int, given: dict[str, float], error: str
) -> None:
    zes.answers[query, handle] = given
    first, _ = after_two_seconds(zes, monitor)
    assert first.error == error
    assert first.temperature_c is None or first.power_w is None


def test_a_card_without_a_domain_of_its_own_has_its_packages_power(
    zes: FakePyzes, monitor: ModuleType
) -> None:
    zes.answers["zesPowerGetProperties", 104] = UNSUPPORTED
    first, _ = monitor.open_devices().sample(1_000)
    assert (first.energy_mj, first.error) == (None, "")
    zes.answers["zesPowerGetProperties", 104] = {"onSubdevice": 1}
    zes.answers["zesPowerGetEnergyCounter", 103] = {"energy": 7_000_000}
    first, _ = monitor.open_devices().sample(1_000)
    assert first.energy_mj == 7_000


def test_the_inventory_has_no_serial_numbers(zes: FakePyzes, monitor: ModuleType) -> None:
    first, _ = monitor.describe_devices()
    assert first == {
        "name": "Intel(R) Data Center GPU Max 1550",
        "driver": "1099.12",
        "pci_device": "8086:0bd5",
        "stacks": 2,
        "memory_mib": 131072,
        "error": None,
    }


def test_without_a_driver_a_card_or_the_library_the_reason_says_what_to_do(
    zes: FakePyzes, monitor: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    zes.answers["zesInit", 0] = 0x78000001
    with pytest.raises(FlagPerfError, match=r"(?s)does not start: zesInit: 0x78000001.*/dev/dri"):
        monitor.open_devices()
    zes.answers.clear()
    zes.cards = []
    with pytest.raises(FlagPerfError, match="lists no GPU"):
        monitor.open_devices()
    monkeypatch.setitem(sys.modules, "pyzes", None)
    with pytest.raises(FlagPerfError, match="pip package pyzes"):
        monitor.open_devices()
