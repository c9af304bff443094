"""Processor and memory use of the whole host, from its own procfs (Linux), processors by psutil."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from utils.monitors.files import kernel_text
from utils.monitors.source import Source, SourceUnavailableError
from utils.telemetry.lines import monitor_log_name, value_log
from utils.telemetry.records import Sample, Scope

KIB_PER_MIB = 1024
MEMORY_LINES = re.compile(r"^(MemTotal|MemAvailable|SwapTotal|SwapFree): *(\d+)", re.MULTILINE)
DIGITS = 3
NO_PSUTIL = (
    "the module psutil is not installed: images that FlagPerf builds have it; add it to an image that was built "
    "otherwise (or, without containers, to PROCESS_PYTHON)"
)


class _HostSource(Source):
    """What all have in common: a first reading says whether there is anything to be read."""

    scope = Scope.HOST
    never_waits = True

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc

    def open(self) -> None:
        try:
            self._first_reading()
        except Exception as error:  # a /proc of another kind fails in as many ways as it is read
            raise SourceUnavailableError(f"{self._proc} cannot be used: {error!r}") from error

    def _first_reading(self) -> None:
        self.sample(0)

    def log_entry(self, time_ms: int, samples: Sequence[Sample]) -> str:
        return value_log(time_ms, samples[0].utilisation, DIGITS)


class _CpuSource(_HostSource):
    """Read by psutil, which comes late: the other sources are sampled without it too."""

    def open(self) -> None:
        try:
            import psutil
        except ImportError as error:
            raise SourceUnavailableError(NO_PSUTIL) from error
        psutil.PROCFS_PATH = str(self._proc)
        self._psutil = psutil
        super().open()


class CpuUtilisation(_CpuSource):
    """Mean utilisation of all CPUs since the last sample: time neither idle nor waiting for I/O.

    Time stolen by a hypervisor counts as busy: the CPU was wanted and not free.
    """

    name = "cpu"
    log_name = monitor_log_name("cpu")
    note = (
        "mean utilisation of all CPUs since the last sample, 0 to 1, from /proc/stat; load: mean of a minute"
    )

    def _first_reading(self) -> None:
        self._last = self._busy_and_total_s()

    def sample(self, time_ms: int) -> Sequence[Sample]:
        busy_before, total_before = self._last
        busy, total = self._last = self._busy_and_total_s()
        if (
            total <= total_before
        ):  # the kernel counts ticks of 10 ms: within one, psutil's cpu_percent would say 0
            return []
        used = (busy - busy_before) / (total - total_before)
        return [Sample(time_ms, self.name, utilisation=min(max(used, 0.0), 1.0), load=os.getloadavg()[0])]

    def _busy_and_total_s(self) -> tuple[float, float]:
        return _busy_and_total_s(self._psutil.cpu_times())


def _busy_and_total_s(times: Any) -> tuple[float, float]:
    """Of psutil's times of one CPU, or of all."""
    total = sum(times) - times.guest - times.guest_nice  # these two are parts of `user` and `nice`
    return total - times.idle - times.iowait, total


class Cores(_CpuSource):
    """Utilisation and clock of each CPU, as the kernel counts them: hardware threads, where a core has several."""

    name = "cores"
    note = (
        "utilisation of each CPU since the last sample, from /proc/stat; its clock as the kernel's cpufreq has it, "
        "where there is one"
    )

    def __init__(self, proc: Path = Path("/proc"), sys: Path = Path("/sys")) -> None:
        super().__init__(proc)
        self._clocks = sys / "devices" / "system" / "cpu"

    def _first_reading(self) -> None:
        self._last = self._times_s()

    def sample(self, time_ms: int) -> Sequence[Sample]:
        before, self._last = self._last, self._times_s()
        samples = []
        for number, (busy, total) in enumerate(self._last):
            used, passed = (
                (busy - before[number][0], total - before[number][1]) if number < len(before) else (0.0, 0.0)
            )
            samples.append(
                Sample(
                    time_ms,
                    self.name,
                    str(number),
                    utilisation=min(max(used / passed, 0.0), 1.0) if passed > 0 else None,
                    clock_mhz=self._clock_mhz(number),
                )
            )
        return samples

    def _times_s(self) -> list[tuple[float, float]]:
        return [_busy_and_total_s(times) for times in self._psutil.cpu_times(percpu=True)]

    def _clock_mhz(self, number: int) -> float | None:
        try:
            return int(kernel_text(f"{self._clocks}/cpu{number}/cpufreq/scaling_cur_freq")) / 1000
        except (OSError, ValueError):  # a virtual machine has none
            return None


class MemoryUtilisation(_HostSource):
    """Memory that is not available to a new process without swapping, as a part of the whole."""

    name = "mem"
    log_name = monitor_log_name("mem")
    note = "1 - MemAvailable / MemTotal, 0 to 1, and swap that is used, from /proc/meminfo"

    def sample(self, time_ms: int) -> Sequence[Sample]:
        lines = MEMORY_LINES.findall(kernel_text(self._proc / "meminfo"))
        mib = {name: int(kib) / KIB_PER_MIB for name, kib in lines}
        total, swap = mib["MemTotal"], mib.get("SwapTotal", 0.0) - mib.get("SwapFree", 0.0)
        used = total - mib["MemAvailable"]
        return [
            Sample(
                time_ms,
                self.name,
                utilisation=used / total,
                memory_used_mib=used,
                memory_total_mib=total,
                swap_used_mib=swap,
            )
        ]
