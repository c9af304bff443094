"""NVML's monitor: the real nvidia-ml-py above a STUB of NVIDIA's library; with a GPU also above the real one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pynvml
import pytest

from run_benchmarks.results.energy import energy_over
from run_benchmarks.results.telemetry_file import read_telemetry
from tests.fakes.nvml import GPU_IS_LOST, LIBRARY_NOT_FOUND, NOT_SUPPORTED, UNKNOWN, StubNvml, compile_stub
from utils.errors import FlagPerfError
from utils.loading import load_module
from utils.monitors.accelerators import Accelerators, describe_accelerators
from utils.monitors.schedule import run_monitors
from utils.telemetry.records import Sample, Window

TRAINING = Path(__file__).parents[2] / "training"
VENDOR = TRAINING / "nvidia"
HANDLE = "nvmlDeviceGetHandleByIndex_v2"


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, StubNvml]:
    if not shutil.which("gcc"):
        pytest.skip("there is no gcc to compile the stub")
    folders = {name: tmp_path_factory.mktemp(name) for name in ("current", "old")}
    return {
        "current": StubNvml(compile_stub(folders["current"])),
        "old": StubNvml(compile_stub(folders["old"], "-DOLD_DRIVER")),
    }


def use(library: StubNvml, monkeypatch: pytest.MonkeyPatch) -> StubNvml:
    monkeypatch.setattr(pynvml, "nvmlLib", library.library)
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
    return library


@pytest.fixture
def nvml(libraries: dict[str, StubNvml], monkeypatch: pytest.MonkeyPatch) -> Iterator[StubNvml]:
    yield use(libraries["current"], monkeypatch)
    libraries["current"].reset()


@pytest.fixture
def monitor() -> ModuleType:
    module = load_module(VENDOR / "nvidia_monitor.py", "nvidia_monitor_under_test")
    module.INITIAL_PID_NAMESPACE = (
        Path("/proc/self/ns/pid").stat().st_ino
    )  # also where tests run in a container
    return module


@pytest.fixture(params=["stub", "real"])
def any_nvml(request: pytest.FixtureRequest) -> None:
    """The stub, and where there is a GPU its own library."""
    if request.param == "stub":
        request.getfixturevalue("nvml")
        return
    try:
        pynvml.nvmlInit()
        pynvml.nvmlShutdown()
    except pynvml.NVMLError as error:
        pytest.skip(f"there is no GPU on this machine: {error}")


def test_a_gpu_is_sampled_in_the_records_units(nvml: StubNvml, monitor: ModuleType) -> None:
    first, second = monitor.open_devices().sample(1_000)
    assert (first.device, second.device, first.error) == ("0", "1", "")
    assert (first.power_w, first.power_instant_w, second.power_w) == (300, 350, 301)
    assert (first.utilisation, first.temperature_c, first.memory_temperature_c) == (0.98, 33, 48)
    assert (first.memory_used_mib, first.memory_total_mib) == (1024, 40960)
    assert (first.clock_mhz, first.memory_clock_mhz) == (1395, 1215)
    assert first.throttle == "sw_power_cap,sw_thermal_slowdown" and second.throttle == "", "idle is no reason"
    assert (first.ecc_corrected, first.ecc_uncorrected, first.remapped_rows) == (7, 0, 3)
    assert first.energy_mj and first.energy_mj >= 1_000_000
    assert first.nvlink_received_bytes == pytest.approx(2 * first.nvlink_sent_bytes, rel=0.5, abs=2**20)
    assert (first.processes, second.processes) == (2, 1)


def test_what_every_gpu_says_is_plausible(any_nvml: None, monitor: ModuleType) -> None:
    devices = monitor.open_devices()
    before, after = devices.sample(1_000), devices.sample(2_000)
    assert [sample.device for sample in after] == list(map(str, range(len(after))))
    for early, late in zip(before, after, strict=True):
        assert not late.error
        assert 1 < late.power_w < 3000 and 0 <= late.utilisation <= 1 and -20 < late.temperature_c < 130
        assert 0 <= late.memory_used_mib <= late.memory_total_mib and 0 < late.clock_mhz < 5000
        assert early.energy_mj is None or early.energy_mj <= late.energy_mj
    described = devices.describe()
    assert len(described) == len(after) and all(each["name"] and each["driver"] for each in described)
    assert "power" in devices.note
    devices.close()


def test_of_pcie_one_gpu_and_way_is_asked_at_each_tick(nvml: StubNvml, monitor: ModuleType) -> None:
    devices, asked = monitor.open_devices(), []
    for _ in range(5):
        samples: list[Sample] = devices.sample(1_000)
        asked += [
            (sample.device, sample.pcie_sent_bytes_per_s, sample.pcie_received_bytes_per_s)
            for sample in samples
            if (sample.pcie_sent_bytes_per_s, sample.pcie_received_bytes_per_s) != (None, None)
        ]
    sent, received = 1024 * 1024, 2048 * 1024
    first = [("0", sent, None), ("0", None, received)]
    assert asked == [*first, ("1", sent, None), ("1", None, received), first[0]]


@pytest.mark.parametrize(
    ("query", "reading"),
    [
        ("nvmlDeviceGetTotalEnergyConsumption", "energy_mj"),
        ("nvmlDeviceGetUtilizationRates", "utilisation"),
        ("nvmlDeviceGetMemoryInfo", "memory_used_mib"),
        ("nvmlDeviceGetClockInfo", "clock_mhz"),
        ("nvmlDeviceGetPcieThroughput", "pcie_sent_bytes_per_s"),
        ("nvmlDeviceGetComputeRunningProcesses_v3", "processes"),
        ("field 186", "power_instant_w"),
        ("field 82", "memory_temperature_c"),
        ("field 139", "nvlink_received_bytes"),
    ],
)
def test_what_a_gpu_has_not_is_not_measured_and_no_error(
    nvml: StubNvml, monitor: ModuleType, query: str, reading: str
) -> None:
    nvml.answer(query, 0, NOT_SUPPORTED)
    first, second = monitor.open_devices().sample(1_000)
    assert (getattr(first, reading), first.power_w, first.error) == (None, 300, "")
    assert reading.startswith("pcie") or getattr(second, reading) is not None


def test_without_an_average_power_is_the_one_that_there_is_and_the_note_says_which(
    nvml: StubNvml, monitor: ModuleType
) -> None:
    assert "power is its field POWER_AVERAGE" in monitor.open_devices().note
    for number in (185, 186):
        nvml.answer(f"field {number}", 1, NOT_SUPPORTED)
    devices = monitor.open_devices()
    first, second = devices.sample(1_000)
    assert (first.power_w, second.power_w, second.power_instant_w) == (300, 301.4, None)
    assert (
        "power of 0 is its field POWER_AVERAGE" in devices.note and "of the others the only" in devices.note
    )


def test_a_driver_without_these_queries_is_sampled_as_far_as_it_goes(
    libraries: dict[str, StubNvml], monitor: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(libraries["old"], monkeypatch)
    devices = monitor.open_devices()
    first, _ = devices.sample(1_000)
    assert (first.power_w, first.power_instant_w, first.error) == (300.4, None, "")
    assert first.throttle == "sw_power_cap,sw_thermal_slowdown", "by the name that it had then"
    assert first.processes is None and first.ecc_corrected is None
    assert "power is the only one that there is" in devices.note


def test_a_gpu_that_falls_off_the_bus_says_so_and_the_others_are_sampled(
    nvml: StubNvml, monitor: ModuleType
) -> None:
    devices = monitor.open_devices()
    nvml.answer(HANDLE, 0, GPU_IS_LOST)
    first, second = devices.sample(1_000)
    assert first.error == "nvmlDeviceGetHandleByIndex: GPU is lost"
    assert first.power_w is None and first.utilisation is None
    assert second.power_w == 301 and not second.error


def test_a_gpu_that_is_lost_while_it_is_asked_says_so_once(nvml: StubNvml, monitor: ModuleType) -> None:
    for name in ("PowerUsage", "FieldValues", "MemoryInfo", "ClockInfo", "TotalEnergyConsumption"):
        nvml.answer(f"nvmlDeviceGet{name}", 1, GPU_IS_LOST)
    _, second = monitor.open_devices().sample(1_000)
    assert second.error == "nvmlDeviceGetFieldValues: GPU is lost"
    assert (second.power_w, second.temperature_c) == (None, 33)


def test_a_query_that_fails_is_named_and_the_other_values_kept(nvml: StubNvml, monitor: ModuleType) -> None:
    nvml.answer("field 185", 1, UNKNOWN)
    _, second = monitor.open_devices().sample(1_000)
    assert second.error == "NVML_FI_DEV_POWER_AVERAGE: Unknown Error"
    assert (second.power_w, second.temperature_c) == (301.4, 33), "the other way to its power is there"


def test_in_a_container_processes_are_not_counted(nvml: StubNvml, monitor: ModuleType) -> None:
    monitor.INITIAL_PID_NAMESPACE = 1
    assert [sample.processes for sample in monitor.open_devices().sample(1_000)] == [None, None]


def test_without_a_driver_the_reason_says_what_to_do(nvml: StubNvml, monitor: ModuleType) -> None:
    nvml.answer("nvmlInitWithFlags", 0, LIBRARY_NOT_FOUND)
    with pytest.raises(FlagPerfError, match=r"(?s)NVML does not start: NVML Shared Library Not.*nvidia-smi"):
        monitor.open_devices()


def test_without_a_gpu_that_is_the_reason(
    nvml: StubNvml, monitor: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUB_NVML_DEVICES", "0")
    with pytest.raises(FlagPerfError, match="NVML shows no GPU"):
        monitor.open_devices()


def test_without_the_library_the_reason_names_the_package(
    monitor: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(FlagPerfError, match="nvidia-ml-py"):
        monitor.open_devices()


def test_the_frame_writes_the_documented_log_and_energy_comes_from_the_counter(
    nvml: StubNvml, tmp_path: Path
) -> None:
    run_monitors([(Accelerators(VENDOR), 0.05)], tmp_path, threading.Event(), ticks=8)
    lines = (tmp_path / "nvidia_monitor.log").read_text().splitlines()
    assert lines[1:4] == ["33C 300W 1024MiB 40960MiB 98%", "33C 301W 1024MiB 40960MiB 98%", ""]
    telemetry = read_telemetry(tmp_path / "telemetry.jsonl")
    first, last = telemetry.samples[0], telemetry.samples[-1]
    energy = energy_over(telemetry, Window(first.time_ms, last.time_ms), "nvidia")
    counted = sum(
        device[-1].energy_mj - device[0].energy_mj  # type: ignore[operator]
        for device in telemetry.devices("nvidia").values()
    )
    assert energy.value == pytest.approx(counted / 1000) and counted > 0
    assert energy.source == "nvidia (accelerator: 0, 1): hardware energy counter"


def test_the_monitor_as_a_program_of_its_own_samples_eight_gpus(
    libraries: dict[str, StubNvml], tmp_path: Path
) -> None:
    folder = Path(libraries["current"].library._name).parent
    environment = {"PYTHONPATH": str(TRAINING), "LD_LIBRARY_PATH": str(folder), "STUB_NVML_DEVICES": "8"}
    words = ["--log-dir", str(tmp_path), "--vendor-dir", str(VENDOR), "--sources", "accelerators=0.1"]
    command = [sys.executable, "-m", "utils.monitors", *words, "--ticks", "3"]
    subprocess.run(command, env={**os.environ, **environment}, check=True, timeout=120)
    devices = read_telemetry(tmp_path / "telemetry.jsonl").devices("nvidia")
    assert [samples[-1].power_w for samples in devices.values()] == list(range(300, 308))


def test_the_inventory_has_firmware_driver_and_limits_of_each_gpu(nvml: StubNvml) -> None:
    nvml.answer("nvmlDeviceGetMigMode", 1, NOT_SUPPORTED)
    nvml.answer("nvmlDeviceGetVbiosVersion", 1, UNKNOWN)
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


def test_a_gpu_that_is_gone_takes_no_other_out_of_the_inventory(nvml: StubNvml) -> None:
    nvml.answer(HANDLE, 0, GPU_IS_LOST)
    first, second = describe_accelerators(VENDOR)
    assert first["error"] == "nvmlDeviceGetHandleByIndex: GPU is lost" and "name" not in first
    assert second["name"] and first["driver"] == second["driver"]
