"""The sources of the host, read from trees made like /proc and /sys, and once from this machine's own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.utils.monitors.value_log import logged_values
from utils.monitors.host import CpuUtilisation, MemoryUtilisation
from utils.monitors.power import MachinePower, RaplPower
from utils.monitors.source import SourceUnavailableError
from utils.telemetry.records import Telemetry, Window
from utils.telemetry.windows import energy_over

RANGE_UJ = 262_143_328_850  # of an Intel Xeon's package


def write(path: Path, text: str | int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


# --- CPU and memory --------------------------------------------------------------------------------------


def test_cpu_utilisation_is_what_was_neither_idle_nor_waiting(tmp_path: Path) -> None:
    #                       user nice system idle iowait irq softirq steal guest guest_nice
    write(tmp_path / "stat", "cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 100 0 100 800 0 0 0 0 0 0")
    source = CpuUtilisation(tmp_path)
    source.open()
    write(tmp_path / "stat", "cpu  150 10 120 880 20 5 5 10 40 0\ncpu0 0 0 0 0 0 0 0 0 0 0")
    (sample,) = source.sample(1_000)
    assert sample.utilisation == pytest.approx(100 / 200)  # 200 ticks have passed, 80 idle and 20 waiting


def test_cpu_utilisation_says_nothing_when_no_tick_has_passed(tmp_path: Path) -> None:
    write(tmp_path / "stat", "cpu  100 0 100 800 0 0 0 0 0 0")
    source = CpuUtilisation(tmp_path)
    source.open()
    assert list(source.sample(1_000)) == []


def test_memory_is_what_is_not_available(tmp_path: Path) -> None:
    write(
        tmp_path / "meminfo",
        "MemTotal: 4194304 kB\nMemFree: 5 kB\nMemAvailable: 1048576 kB\nBuffers: 0 kB\nCached: 0 kB\n"
        "Shmem: 0 kB\nActive: 0 kB\nInactive: 0 kB\nHugePages_Total: 0",
    )
    source = MemoryUtilisation(tmp_path)
    source.open()
    (sample,) = source.sample(1_000)
    assert (sample.utilisation, sample.memory_used_mib, sample.memory_total_mib) == (0.75, 3072, 4096)


@pytest.mark.parametrize("text", ["", "intr 1 2 3", "cpu 1 2"])
def test_a_proc_of_another_kind_is_known_when_the_source_is_opened(tmp_path: Path, text: str) -> None:
    write(tmp_path / "stat", text)
    write(tmp_path / "meminfo", "MemTotal: 1 kB")
    for source in (CpuUtilisation(tmp_path), MemoryUtilisation(tmp_path), CpuUtilisation(tmp_path / "no")):
        with pytest.raises(SourceUnavailableError, match=f"{tmp_path}.* cannot be used"):
            source.open()


def test_without_psutil_the_reason_says_where_it_belongs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psutil", None)
    for source in (CpuUtilisation(), MemoryUtilisation()):
        with pytest.raises(SourceUnavailableError, match=r"psutil is not installed.*PROCESS_PYTHON"):
            source.open()


def test_this_machines_own_proc(tmp_path: Path) -> None:
    source = MemoryUtilisation()
    source.open()
    (sample,) = source.sample(1_000)
    assert sample.utilisation is not None and 0 < sample.utilisation < 1
    log = tmp_path / "mem_monitor.log"
    log.write_text(source.log_entry(1_000, [sample]))
    assert logged_values(log)[0] == pytest.approx(sample.utilisation, abs=0.001)


# --- RAPL -----------------------------------------------------------------------------------------------


def rapl_zone(sys: Path, folder: str, name: str, energy_uj: int) -> Path:
    zone = sys / "class" / "powercap" / folder
    write(zone / "name", name)
    write(zone / "max_energy_range_uj", RANGE_UJ)
    write(zone / "energy_uj", energy_uj)
    return zone / "energy_uj"


@pytest.fixture
def rapl_sys(tmp_path: Path) -> Path:
    """Two packages with DRAM and cores, a platform domain and an MMIO double, as kernels show them."""
    (tmp_path / "class" / "powercap" / "intel-rapl").mkdir(parents=True)
    rapl_zone(tmp_path, "intel-rapl:0", "package-0", 1_000_000)
    rapl_zone(tmp_path, "intel-rapl:0:0", "core", 5)
    rapl_zone(tmp_path, "intel-rapl:0:1", "dram", 2_000_000)
    rapl_zone(tmp_path, "intel-rapl:1", "package-1", 3_000_000)
    rapl_zone(tmp_path, "intel-rapl:1:0", "dram", 4_000_000)
    rapl_zone(tmp_path, "intel-rapl:2", "psys", 9)
    rapl_zone(tmp_path, "intel-rapl-mmio:0", "package-0", 1_000_000)
    return tmp_path


def test_rapl_reads_packages_and_their_dram_and_nothing_twice(rapl_sys: Path) -> None:
    source = RaplPower(rapl_sys)
    source.open()
    samples = source.sample(1_000)
    assert [s.device for s in samples] == ["package-0", "package-0/dram", "package-1", "package-1/dram"]
    assert [s.energy_mj for s in samples] == [1000, 2000, 3000, 4000]
    assert source.log_entry(1_000, samples) == "", "a counter's first reading has no power"
    assert "not the power of the whole machine" in source.note


def test_rapl_power_is_the_counters_growth_over_time(rapl_sys: Path) -> None:
    source = RaplPower(rapl_sys)
    source.open()
    source.sample(1_000)
    rapl_zone(rapl_sys, "intel-rapl:0", "package-0", 1_000_000 + 90_000_000)
    samples = source.sample(2_000)
    assert [s.power_w for s in samples] == pytest.approx([90, 0, 0, 0])
    assert source.log_entry(2_000, samples).endswith("\t90.0\n")


def test_rapl_power_and_energy_survive_the_counters_wrap(rapl_sys: Path) -> None:
    counter = rapl_zone(rapl_sys, "intel-rapl:0", "package-0", RANGE_UJ - 40_000_000)
    source = RaplPower(rapl_sys)
    source.open()
    samples = list(source.sample(1_000))
    counter.write_text("60000000\n")  # 100 J later
    samples += source.sample(2_000)
    assert samples[4].power_w == pytest.approx(100)
    package = tuple(s for s in samples if s.device == "package-0")
    energy = energy_over(Telemetry("t", (), package), Window(1_000, 2_000), "rapl")
    assert energy.value == pytest.approx(100)


def test_without_rapl_the_reason_names_the_place(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailableError, match=f"no RAPL package domain under {tmp_path}"):
        RaplPower(tmp_path).open()


def test_rapl_counters_that_cannot_be_read_are_a_reason(rapl_sys: Path) -> None:
    counter = rapl_sys / "class" / "powercap" / "intel-rapl:0" / "energy_uj"
    counter.unlink()
    counter.mkdir()  # a file that even root cannot read
    with pytest.raises(SourceUnavailableError, match="need root"):
        RaplPower(rapl_sys).open()


# --- the power meter of the machine ------------------------------------------------------------------------


@pytest.mark.parametrize("folder", ["hwmon3", "hwmon3/device"], ids=["new kernels", "old kernels"])
def test_the_acpi_power_meter_is_found_among_other_sensors(tmp_path: Path, folder: str) -> None:
    hwmon = tmp_path / "class" / "hwmon"
    write(hwmon / "hwmon0" / "name", "coretemp")
    write(hwmon / "hwmon1" / "name", "amdgpu")
    write(hwmon / "hwmon1" / "power1_average", 90_000_000)
    write(hwmon / folder / "name", "power_meter")
    write(hwmon / folder / "power1_average", 412_500_000)
    write(hwmon / folder / "power1_average_interval", 1000)
    source = MachinePower(tmp_path)
    source.open()
    samples = source.sample(1_000)
    assert [s.power_w for s in samples] == pytest.approx([412.5])
    assert source.log_entry(1_000, samples).endswith("\t412.5\n")
    assert source.note.endswith("averaged over 1000 ms")


def test_without_a_power_meter_the_reason_names_the_place(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailableError, match=r"whole machine: no ACPI power meter under .*/hwmon"):
        MachinePower(tmp_path).open()
