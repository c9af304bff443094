"""The NVML monitor against a FAKE pynvml: there is no GPU here, so the fake stands at the library's boundary.

The fake is tests/fakes/nvml.py.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from types import ModuleType

import pytest

from run_benchmarks.results.telemetry_file import read_telemetry
from tests.fakes.nvml import FakeNvml
from utils.errors import FlagPerfError
from utils.loading import load_module
from utils.monitors.accelerators import Accelerators, describe_accelerators
from utils.monitors.frame import run_monitors
from utils.telemetry.records import Window
from utils.telemetry.windows import energy_over

VENDOR = Path(__file__).parents[2] / "training" / "nvidia"


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    fake = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    return fake


@pytest.fixture
def monitor() -> ModuleType:
    return load_module(VENDOR / "nvidia_monitor.py", "nvidia_monitor_under_test")


def test_a_gpu_is_sampled_in_the_records_units(nvml: FakeNvml, monitor: ModuleType) -> None:
    first, second = monitor.open_devices().sample(1_000)
    assert (first.device, second.device) == ("0", "1")
    assert (first.power_w, first.utilisation, first.temperature_c) == (61.4, 0.98, 33)
    assert (first.memory_used_mib, first.memory_total_mib) == (1024, 40960)
    assert first.energy_mj == 1_010_000
    assert not first.error


def test_a_sensor_that_the_gpu_has_not_is_not_measured_and_no_error(
    nvml: FakeNvml, monitor: ModuleType
) -> None:
    nvml.answers["nvmlDeviceGetTotalEnergyConsumption", 0] = nvml.NVMLError_NotSupported("Not Supported")
    first, second = monitor.open_devices().sample(1_000)
    assert (first.energy_mj, first.power_w, first.error) == (None, 61.4, "")
    assert second.energy_mj is not None


def test_a_gpu_that_is_lost_says_so_and_the_others_are_sampled(nvml: FakeNvml, monitor: ModuleType) -> None:
    devices = monitor.open_devices()
    nvml.answers["nvmlDeviceGetHandleByIndex", 0] = nvml.NVMLError_GpuIsLost("GPU is lost")
    first, second = devices.sample(1_000)
    assert first.error == "nvmlDeviceGetHandleByIndex: GPU is lost"
    assert first.power_w is None and first.utilisation is None
    assert second.power_w == 61.4


def test_a_query_that_fails_is_named_and_the_other_values_kept(nvml: FakeNvml, monitor: ModuleType) -> None:
    nvml.answers["nvmlDeviceGetPowerUsage", 1] = nvml.NVMLError("Unknown Error")
    _, second = monitor.open_devices().sample(1_000)
    assert second.error == "nvmlDeviceGetPowerUsage: Unknown Error"
    assert (second.power_w, second.temperature_c) == (None, 33)


def test_without_a_driver_the_reason_says_what_to_do(nvml: FakeNvml, monitor: ModuleType) -> None:
    nvml.answers["nvmlInit", -1] = nvml.NVMLError("NVML Shared Library Not Found")
    with pytest.raises(
        FlagPerfError, match=r"(?s)NVML does not start: NVML Shared Library Not Found.*nvidia-smi"
    ):
        monitor.open_devices()


def test_without_the_library_the_reason_names_the_package(
    monitor: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(FlagPerfError, match="nvidia-ml-py"):
        monitor.open_devices()


def test_the_frame_writes_the_documented_log_and_energy_comes_from_the_counter(
    nvml: FakeNvml, tmp_path: Path
) -> None:
    run_monitors([(Accelerators(VENDOR), 0.02)], tmp_path, threading.Event(), ticks=3)
    lines = (tmp_path / "nvidia_monitor.log").read_text().splitlines()
    assert lines[1:4] == ["33C 61W 1024MiB 40960MiB 98%"] * 2 + [""]
    telemetry = read_telemetry(tmp_path / "telemetry.jsonl")
    first, last = telemetry.samples[0], telemetry.samples[-1]
    energy = energy_over(telemetry, Window(first.time_ms, last.time_ms), "nvidia")
    ticks = len(telemetry.samples) // 2
    assert energy.value == pytest.approx(2 * 2 * 10 * (ticks - 1))  # two GPUs, 20 J a tick each
    assert energy.source == "nvidia (accelerator: 0, 1): hardware energy counter"
    assert nvml.calls[-1] == "nvmlShutdown"


def test_the_inventory_has_firmware_driver_and_limits_of_each_gpu(nvml: FakeNvml) -> None:
    nvml.answers[("nvmlDeviceGetMigMode", 1)] = FakeNvml.NVMLError_NotSupported()
    nvml.answers[("nvmlDeviceGetVbiosVersion", 1)] = FakeNvml.NVMLError("Unknown Error")
    first, second = describe_accelerators(VENDOR)
    assert first == {
        "name": "NVIDIA A100-SXM4-40GB",
        "vbios": "92.00.45.00.03",
        "inforom": "G506.0200.00.04",
        "gsp_firmware": "570.86.15",
        "pci_bus": "00000000:07:00.0",
        "pcie_generation": 4,
        "pcie_width": 16,
        "memory_mib": 40960,
        "power_limit_w": 400,
        "max_sm_mhz": 1410,
        "max_memory_mhz": 1215,
        "ecc": True,
        "mig": False,
        "error": None,
        "driver": "570.86.15",
        "cuda_driver": "12.8",
    }
    assert second["mig"] is second["vbios"] is None
    assert second["error"] == "nvmlDeviceGetVbiosVersion: Unknown Error"
    assert nvml.calls[-1] == "nvmlShutdown"


def test_a_gpu_that_is_gone_takes_no_other_out_of_the_inventory(nvml: FakeNvml) -> None:
    nvml.answers[("nvmlDeviceGetHandleByIndex", 0)] = FakeNvml.NVMLError_GpuIsLost("GPU is lost")
    first, second = describe_accelerators(VENDOR)
    assert first["error"] == "nvmlDeviceGetHandleByIndex: GPU is lost" and "name" not in first
    assert second["name"] and first["driver"] == second["driver"]
