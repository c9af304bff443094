"""The sources of the host, read from trees made like /proc and /sys, and once from this machine's own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from run_benchmarks.results.energy import energy_over, max_power
from tests.fakes.clock import HandClock
from tests.utils.monitors.value_log import logged_values
from utils.errors import FlagPerfError
from utils.monitors import power
from utils.monitors.host import Cores, CpuUtilisation, MemoryUtilisation
from utils.monitors.power import MachinePower, RaplPower
from utils.monitors.sensors import Temperatures
from utils.monitors.source import SourceUnavailableError
from utils.monitors.traffic import Disks, InfiniBand, Network
from utils.telemetry.records import Sample, Scope, SourceInfo, Telemetry, Window

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
    for source in (CpuUtilisation(), Cores()):
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


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="there is one CPU alone")
def test_the_core_of_a_busy_loop_is_reported_busy() -> None:
    """On this machine's own /proc: the core that a loop was tied to, over the processor time that the loop had."""
    core = max(os.sched_getaffinity(0))
    source = Cores()
    source.open()
    command = [sys.executable, "-c", f"import os; os.sched_setaffinity(0, [{core}])\nwhile True: pass"]
    with subprocess.Popen(command) as loop:
        busy = psutil.Process(loop.pid)
        try:
            while busy.cpu_times().user < 0.2:
                time.sleep(0.01)
            source.sample(1_000)
            begin = busy.cpu_times().user
            while busy.cpu_times().user < begin + 0.5:
                time.sleep(0.01)
            samples = {sample.device: sample.utilisation or 0 for sample in source.sample(2_000)}
        finally:
            loop.kill()
    assert samples[str(core)] > 0.9, samples


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


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> HandClock:
    """RAPL's readings have the time at which they were read."""
    simulated = HandClock(0.0)
    monkeypatch.setattr(power, "time", simulated)
    return simulated


def at(clock: HandClock, second: float, source: RaplPower) -> Sequence[Sample]:
    clock.now = second
    return source.sample(round(second * 1_000))


def test_rapl_reads_packages_and_their_dram_and_nothing_twice(rapl_sys: Path) -> None:
    source = RaplPower(rapl_sys)
    source.open()
    samples = source.sample(1_000)
    assert [s.device for s in samples] == ["package-0", "package-0/dram", "package-1", "package-1/dram"]
    assert [s.energy_mj for s in samples] == [1000, 2000, 3000, 4000]
    assert source.log_entry(1_000, samples) == "", "a counter's first reading has no power"
    assert "not the power of the whole machine" in source.note


def test_rapl_power_is_the_counters_growth_over_time(rapl_sys: Path, clock: HandClock) -> None:
    source = RaplPower(rapl_sys)
    source.open()
    at(clock, 1, source)
    rapl_zone(rapl_sys, "intel-rapl:0", "package-0", 1_000_000 + 90_000_000)
    samples = at(clock, 2, source)
    assert [s.power_w for s in samples] == pytest.approx([90, 0, 0, 0])
    assert source.log_entry(2_000, samples).endswith("\t90.0\n")


def test_rapl_power_and_energy_survive_the_counters_wrap(rapl_sys: Path, clock: HandClock) -> None:
    counter = rapl_zone(rapl_sys, "intel-rapl:0", "package-0", RANGE_UJ - 40_000_000)
    source = RaplPower(rapl_sys)
    source.open()
    samples = list(at(clock, 1, source))
    counter.write_text("60000000\n")  # 100 J later
    samples += at(clock, 2, source)
    assert samples[4].power_w == pytest.approx(100)
    package = tuple(s for s in samples if s.device == "package-0")
    info = SourceInfo(0, "rapl", Scope.PACKAGE, 1.0)
    energy = energy_over(Telemetry("t", (info,), package), Window(1_000, 2_000), "rapl")
    assert energy.value == pytest.approx(100)


@pytest.mark.parametrize("energy_uj", [1_199_999_999, 0], ids=["1 uJ back", "reset to 0"])
def test_a_rapl_counter_that_is_set_back_has_not_wrapped(
    rapl_sys: Path, energy_uj: int, clock: HandClock
) -> None:
    """Nobody knows which of two such readings is wrong: power is told again from the third on."""
    counter = rapl_zone(rapl_sys, "intel-rapl:0", "package-0", 1_000_000_000)
    source = RaplPower(rapl_sys)
    source.open()
    samples = []
    for second, reading in enumerate([1_000_000_000, 1_200_000_000, energy_uj, 1_600_000_000, 1_800_000_000]):
        counter.write_text(f"{reading}\n")
        samples.append(at(clock, second, source)[0])
    assert [s.power_w for s in samples] == [None, 200, None, None, 200]
    assert samples[2].error == f"its counter went from 1200000 to {energy_uj / 1000:.0f} mJ in 1000 ms"
    assert [bool(s.error) for s in samples] == [False, False, True, False, False]


def test_rapl_says_when_its_counter_may_wrap_unseen(rapl_sys: Path, clock: HandClock) -> None:
    source = RaplPower(rapl_sys)
    source.open()
    at(clock, 0, source)
    for second in (140, 280):
        samples = at(clock, second, source)
        assert {s.power_w for s in samples} == {None}
        assert "wrapped unseen in 140 s between two readings, more than 130 s: MONITORS" in samples[0].error


def test_amds_packages_are_read_by_powercap_as_intels(tmp_path: Path) -> None:
    """As Linux 5.8 and later have them on an EPYC: no DRAM is counted apart."""
    rapl_zone(tmp_path, "intel-rapl:0", "package-0", 5_000)
    rapl_zone(tmp_path, "intel-rapl:0:0", "core", 1)
    source = RaplPower(tmp_path)
    source.open()
    assert [(s.device, s.energy_mj) for s in source.sample(1_000)] == [("package-0", 5)]


def test_amds_packages_are_read_by_the_driver_that_older_kernels_have(
    tmp_path: Path, clock: HandClock
) -> None:
    chip = tmp_path / "class" / "hwmon" / "hwmon1"
    write(chip / "name", "amd_energy")
    for number, (label, energy_uj) in enumerate(
        [("Ecore000", 7), ("Esocket0", 2_000_000), ("Esocket1", 9_000_000)], start=1
    ):
        write(chip / f"energy{number}_label", label)
        write(chip / f"energy{number}_input", energy_uj)
    source = RaplPower(tmp_path)
    source.open()
    assert [(s.device, s.energy_mj) for s in at(clock, 1, source)] == [
        ("package-0", 2000),
        ("package-1", 9000),
    ]
    write(chip / "energy2_input", 82_000_000)
    write(chip / "energy3_input", 0)  # the driver was loaded anew
    first, second = at(clock, 2, source)
    assert (first.power_w, second.power_w) == (80, None) and first.energy_range_mj is None


WATTS = 100
# How long, in ms, each reading of a counter takes, one after the other; those behind the last take 0.1 ms.
SLOW = {
    "never": [],
    "once": [0.1] * 12 + [500],
    "twice, behind the counter": [0.1] * 12 + [0.1, 0.1, 0.1, 500, 0.1, 900],
    "each time for a second": [0.1] * 12 + [0.1, 40, 0.1, 0.1] * 3,
    "at first": [300, 0.1, 0.1, 0.1] * 3,
    "always a little": [2.0] * 400,
}


class SlowCounters:
    """FAKE of the kernel's counters on a busy host: WATTS by the clock, which goes on while one is read."""

    def __init__(self, clock: HandClock, durations_ms: Sequence[float]) -> None:
        self.clock, self.durations_ms = clock, list(durations_ms)

    def text(self, path: Path) -> str:
        took_s = (self.durations_ms.pop(0) if self.durations_ms else 0.1) / 1000
        self.clock.now += took_s / 2
        energy_uj = round(self.clock.now * WATTS * 1e6)
        self.clock.now += took_s / 2
        return str(energy_uj)


@pytest.mark.parametrize("slow", SLOW.values(), ids=SLOW)
@pytest.mark.parametrize("interval_s", [0.1, 1.0])
def test_the_largest_power_of_packages_is_right_however_late_their_counters_are_read(
    slow: Sequence[float],
    interval_s: float,
    rapl_sys: Path,
    clock: HandClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = RaplPower(rapl_sys)
    source.open()
    monkeypatch.setattr(power, "kernel_text", SlowCounters(clock, slow).text)
    samples: list[Sample] = []
    tick, ticks = 0, 100
    while tick < ticks:
        clock.now = max(clock.now, 1000 + tick * interval_s)
        with suppress(FlagPerfError):
            samples += source.sample(0)
        tick = max(tick + 1, int((clock.now - 1000) / interval_s))
    window = Window(samples[0].time_ms, samples[-1].time_ms)
    info = SourceInfo(0, "rapl", Scope.PACKAGE, interval_s)
    telemetry = Telemetry("t", (info,), tuple(samples))
    largest = max_power(telemetry, window, "rapl")
    assert largest.value == pytest.approx(4 * WATTS, rel=power.MOST_UNKNOWN)
    assert largest.coverage > 0.9 and window.seconds > 0.9 * (ticks - 1) * interval_s
    told = [sample.power_w for sample in samples if sample.power_w is not None]
    assert told == pytest.approx([WATTS] * len(told), rel=power.MOST_UNKNOWN)


def test_counters_that_are_never_read_quickly_are_no_reading(
    rapl_sys: Path, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = RaplPower(rapl_sys)
    source.open()
    monkeypatch.setattr(power, "kernel_text", SlowCounters(clock, [110] * 12).text)
    with pytest.raises(FlagPerfError, match="took more than 100 ms, 3 times"):
        source.sample(0)
    assert len(source.sample(0)) == 4


def test_a_clock_that_was_set_back_leaves_no_hour_without_power(rapl_sys: Path, clock: HandClock) -> None:
    source = RaplPower(rapl_sys)
    source.open()
    assert [len(at(clock, second, source)) for second in (4_000, 4_000.02, 400, 401)] == [4, 0, 4, 4]


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


@pytest.mark.parametrize("micro_watts", [0, 65_535_000_000_000])
def test_an_acpi_meter_that_says_what_no_machine_draws_has_no_reading(
    tmp_path: Path, micro_watts: int
) -> None:
    write(tmp_path / "class/hwmon/hwmon3/name", "power_meter")
    write(tmp_path / "class/hwmon/hwmon3/power1_average", micro_watts)
    source = MachinePower(tmp_path)
    source.open()
    with pytest.raises(FlagPerfError, match="which no machine that runs draws"):
        source.sample(1_000)


def test_without_a_power_meter_the_reason_names_the_place(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailableError, match=r"whole machine: no ACPI power meter under .*/hwmon"):
        MachinePower(tmp_path).open()


# --- single CPUs, traffic, temperatures ------------------------------------------------------------------


def test_each_cpu_has_its_own_use_and_clock(tmp_path: Path) -> None:
    proc, cpufreq = tmp_path / "proc", tmp_path / "sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq"
    write(proc / "stat", "cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 0 0 0 100 0 0 0 0 0 0\ncpu1 0 0 0 100 0 0 0 0 0 0")
    write(cpufreq, 2_400_000)
    source = Cores(proc, tmp_path / "sys")
    source.open()
    write(proc / "stat", "cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 75 0 0 125 0 0 0 0 0 0\ncpu1 0 0 0 200 0 0 0 0 0 0")
    idle, busy = sorted(source.sample(1_000), key=lambda sample: sample.utilisation or 0)
    assert (idle.device, idle.utilisation, idle.clock_mhz) == ("1", 0.0, 2400.0)
    assert (busy.device, busy.utilisation, busy.clock_mhz) == ("0", 0.75, None)


def test_memory_in_swap_is_told(tmp_path: Path) -> None:
    lines = (
        "MemTotal: 4096 kB",
        "MemFree: 1024 kB",
        "MemAvailable: 1024 kB",
        "Buffers: 0 kB",
        "Cached: 0 kB",
    )
    write(tmp_path / "meminfo", "\n".join((*lines, "SwapTotal: 10240 kB", "SwapFree: 8192 kB")))
    source = MemoryUtilisation(tmp_path)
    source.open()
    (sample,) = source.sample(1_000)
    assert (sample.utilisation, sample.swap_used_mib) == (0.75, 2.0)


def test_disks_are_counted_once_and_by_sectors_of_512_bytes(tmp_path: Path) -> None:
    block = tmp_path / "class" / "block"
    stat = " 10 0 {read} 5 20 0 {written} 7 0 8 9"
    for name, is_disk in (("nvme0n1", True), ("loop0", False)):
        write(block / name / "stat", stat.format(read=100, written=200))
        if is_disk:
            (block / name / "device").mkdir()
    write(block / "nvme0n1p1" / "stat", stat.format(read=1, written=1))
    write(block / "nvme0n1p1" / "partition", 1)
    (block / "nvme0n1p1" / "device").mkdir()
    source = Disks(tmp_path)
    source.open()
    write(block / "nvme0n1" / "stat", stat.format(read=102, written=300))
    (sample,) = source.sample(1_000)
    assert (sample.device, sample.read_bytes, sample.written_bytes) == ("nvme0n1", 102 * 512, 300 * 512)
    (block / "nvme0n1" / "stat").unlink()
    (gone,) = source.sample(2_000)
    assert gone.read_bytes is None and "No such file" in gone.error


def test_interfaces_that_have_a_device_are_counted(tmp_path: Path) -> None:
    for name in ("eth0", "docker0"):
        for way, count in (("rx", 1_000), ("tx", 2_000)):
            write(tmp_path / "class/net" / name / "statistics" / f"{way}_bytes", count)
    (tmp_path / "class/net/eth0/device").mkdir()
    source = Network(tmp_path)
    source.open()
    (sample,) = source.sample(1_000)
    assert (sample.device, sample.received_bytes, sample.sent_bytes) == ("eth0", 1_000, 2_000)


def test_infiniband_counts_words_of_four_bytes_at_each_port(tmp_path: Path) -> None:
    device = tmp_path / "class/infiniband/mlx5_0"
    for port in (1, 2):
        write(device / f"ports/{port}/counters/port_rcv_data", 100 * port)
        write(device / f"ports/{port}/counters/port_xmit_data", 200 * port)
    (device / "device").mkdir()
    source = InfiniBand(tmp_path)
    source.open()
    assert [(each.device, each.received_bytes, each.sent_bytes) for each in source.sample(1_000)] == [
        ("mlx5_0/1", 400, 800),
        ("mlx5_0/2", 800, 1600),
    ]


@pytest.mark.parametrize("source", [Disks, Network, InfiniBand, Temperatures])
def test_what_a_host_does_not_have_is_said(tmp_path: Path, source: type[Disks] | type[Temperatures]) -> None:
    with pytest.raises(SourceUnavailableError, match=f"{tmp_path}/class/"):
        source(tmp_path).open()


def test_sensors_have_the_names_that_their_drivers_give_them(tmp_path: Path) -> None:
    chip = tmp_path / "class/hwmon/hwmon3"
    write(chip / "name", "coretemp")
    write(chip / "temp1_input", 45_500)
    write(chip / "temp1_label", "Package id 0")
    write(chip / "temp2_input", -3_000)
    write(chip / "temp3_input", "")  # there, and without an answer
    source = Temperatures(tmp_path)
    source.open()
    assert {each.device: each.temperature_c for each in source.sample(1_000)} == {
        "hwmon3/coretemp/Package id 0": 45.5,
        "hwmon3/coretemp/temp2": -3.0,
    }
    (chip / "temp2_input").unlink()
    assert {each.device: each.error for each in source.sample(2_000)}[
        "hwmon3/coretemp/temp2"
    ] == "it does not answer"
