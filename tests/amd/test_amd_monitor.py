"""The AMD SMI monitor against a FAKE amdsmi (tests/fakes/amdsmi.py): there is no GPU here."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.fakes.amdsmi import NOT_SUPPORTED, FakeAmdSmi
from utils.errors import FlagPerfError
from utils.loading import load_module

VENDOR = Path(__file__).parents[2] / "training" / "amd"
Failure = FakeAmdSmi.AmdSmiLibraryException


@pytest.fixture
def smi(monkeypatch: pytest.MonkeyPatch) -> FakeAmdSmi:
    fake = FakeAmdSmi()
    monkeypatch.setitem(sys.modules, "amdsmi", fake)
    return fake


@pytest.fixture
def monitor() -> ModuleType:
    """Anew each time, for it starts the library once."""
    return load_module(VENDOR / "amd_monitor.py", "amd_monitor_under_test")


def test_a_gpu_is_sampled_in_the_records_units(smi: FakeAmdSmi, monitor: ModuleType) -> None:
    first, second = monitor.open_devices().sample(1_000)
    assert (first.source, first.device, second.device) == ("amd", "0", "1")
    assert (first.power_w, first.utilisation, first.temperature_c) == (234, 0.97, 54)
    assert first.energy_mj == pytest.approx(30_600)
    assert (first.memory_used_mib, first.memory_total_mib, first.error) == (283, 294896, "")


@pytest.mark.parametrize(
    ("info", "power"),
    [
        ({"current_socket_power": 305, "average_socket_power": "N/A"}, 305),  # MI300X before ROCm 7
        ({"current_socket_power": "N/A", "average_socket_power": 237}, 237),  # MI250
        ({"socket_power": "N/A", "current_socket_power": "N/A", "average_socket_power": "N/A"}, None),
    ],
)
def test_power_is_found_in_each_release(
    smi: FakeAmdSmi, monitor: ModuleType, info: dict[str, object], power: float | None
) -> None:
    smi.answers["amdsmi_get_power_info", 0] = info
    first = monitor.open_devices().sample(1_000)[0]
    assert (first.power_w, first.error) == (power, "")
    assert (first.energy_mj is None) == (power is None)


@pytest.mark.parametrize("nothing", [{"average_socket_power": 0}, {"average_socket_power": "N/A"}])
def test_a_package_of_two_dies_is_counted_once(smi: FakeAmdSmi, monitor: ModuleType, nothing: object) -> None:
    smi.buses = tuple(f"0000:{bus:02x}:00.0" for bus in range(4))
    for die in range(4):
        smi.answers["amdsmi_get_gpu_asic_info", die] = {"market_name": "AMD Instinct MI250X / MI250"}
    smi.answers["amdsmi_get_power_info", 1] = smi.answers["amdsmi_get_power_info", 2] = nothing
    samples = monitor.open_devices().sample(1_000)
    carriers = [(sample.power_w, sample.power_on) for sample in samples]
    assert carriers == [(234, None), (None, "0"), (None, "3"), (234, None)]
    assert (samples[1].energy_mj, samples[1].utilisation, samples[1].error) == (None, 0.97, "")


def test_a_gpu_of_one_die_that_tells_no_power_is_not_measured(smi: FakeAmdSmi, monitor: ModuleType) -> None:
    smi.answers["amdsmi_get_power_info", 1] = {"average_socket_power": "N/A"}
    _, second = monitor.open_devices().sample(1_000)
    assert (second.power_w, second.power_on) == (None, None)


def test_partitions_that_repeat_their_packages_power_are_counted_once(
    smi: FakeAmdSmi, monitor: ModuleType
) -> None:
    """As 32 partitions of 8 MI300X did under AMD SMI 24.7 (CHANGELOG.md of ROCm/amdsmi@0ceca28f)."""
    smi.buses = tuple(f"0000:{bus:02x}:00.{part}" for bus in range(8) for part in range(4))
    devices = monitor.open_devices()
    samples = devices.sample(1_000)
    assert [sample.power_w for sample in samples] == [234, None, None, None] * 8
    assert [sample.power_on for sample in samples[:5]] == [None, "0", "0", "0", None]
    smi.answers["amdsmi_get_power_info", 0] = Failure(30)
    assert [sample.power_w for sample in devices.sample(2_000)[:4]] == [None] * 4, "the carrier stays"


def test_older_releases_tell_thousandths_of_a_degree(smi: FakeAmdSmi, monitor: ModuleType) -> None:
    smi.answers["amdsmi_get_temp_metric", 0] = 54_000
    assert monitor.open_devices().sample(1_000)[0].temperature_c == 54


@pytest.mark.parametrize(
    ("query", "answer", "error"),
    [
        ("amdsmi_get_power_info", {"socket_power": 65535}, "a power of 65535 W"),
        ("amdsmi_get_power_info", {"current_socket_power": 4294967295}, "a power of 4.29497e+09 W"),
        ("amdsmi_get_temp_metric", 0, "a temperature of 0 C"),
        (
            "amdsmi_get_gpu_activity",
            Failure(30),
            "amdsmi_get_gpu_activity: Error code: 30 | AMDSMI_STATUS_BUSY - Device busy",
        ),
    ],
)
def test_what_cannot_be_is_an_error_of_that_gpu(
    smi: FakeAmdSmi, monitor: ModuleType, query: str, answer: object, error: str
) -> None:
    smi.answers[query, 0] = answer
    first, second = monitor.open_devices().sample(1_000)
    assert (first.error, second.error) == (error, "")
    assert first.memory_total_mib == 294896


def test_a_sensor_that_the_gpu_has_not_is_no_error(smi: FakeAmdSmi, monitor: ModuleType) -> None:
    smi.answers["amdsmi_get_temp_metric", 0] = Failure(NOT_SUPPORTED)
    smi.answers["amdsmi_get_gpu_activity", 0] = {"gfx_activity": "N/A"}
    first = monitor.open_devices().sample(1_000)[0]
    assert (first.temperature_c, first.utilisation, first.power_w, first.error) == (None, None, 234, "")


def test_the_inventory_neither_ends_nor_starts_the_library_under_the_samples(
    smi: FakeAmdSmi, monitor: ModuleType
) -> None:
    devices = monitor.open_devices()
    first, _ = monitor.describe_devices()
    assert first == {
        "name": "AMD Instinct MI355X",
        "vbios": "023.040.001.008.000001",
        "driver": "6.14.14",
        "pci_bus": "0000:05:00.0",
        "hip_id": 1,
        "compute_partition": "SPX",
        "memory_partition": "NPS1",
        "memory_mib": 294896,
        "power_limit_w": 1400,
        "error": None,
    }
    devices.close()
    assert (smi.calls.count("amdsmi_init"), smi.calls.count("amdsmi_shut_down")) == (1, 0)


def test_without_a_driver_or_a_gpu_the_reason_says_what_to_do(smi: FakeAmdSmi, monitor: ModuleType) -> None:
    smi.answers["amdsmi_init", -1] = Failure(34, "AMDSMI_STATUS_DRIVER_NOT_LOADED - Driver not loaded")
    with pytest.raises(FlagPerfError, match=r"(?s)does not start: .*Driver not loaded.*--device=/dev/kfd"):
        monitor.open_devices()
    smi.answers.clear()
    smi.buses = ()
    with pytest.raises(FlagPerfError, match="lists no GPU"):
        monitor.open_devices()


def test_the_module_is_taken_from_rocms_own_folder(
    monitor: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(monitor, "ROCM", tmp_path)
    monkeypatch.setitem(sys.modules, "amdsmi", None)
    with pytest.raises(FlagPerfError, match=r"not installed, nor in .*/share/amd_smi"):
        monitor.open_devices()
    package = tmp_path / "core-10.1" / "share" / "amd_smi" / "amdsmi"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("from .handles import *\n")
    (package / "handles.py").write_text(
        "class AmdSmiException(Exception): pass\n"
        "def amdsmi_init(): pass\n"
        "def amdsmi_get_processor_handles(): return [7]\n"
    )
    path = list(sys.path)
    assert len(monitor.open_devices()._handles) == 1
    assert sys.path == path
