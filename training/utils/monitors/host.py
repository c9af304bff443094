"""CPU and memory use of the whole host, from /proc (Linux; see proc(5)).

/proc/stat and /proc/meminfo are the host's own in a container too, unless a file system such as lxcfs
is mounted over them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from utils.monitors.source import SourceUnavailableError
from utils.telemetry import Sample, Scope, value_log

KIB_PER_MIB = 1024
DIGITS = 3


class CpuUtilisation:
    """Mean utilisation of all CPUs since the last sample: time neither idle nor waiting for I/O.

    Time stolen by a hypervisor counts as busy: the CPU was wanted and not free.
    """

    name = "cpu"
    log_name = "cpu_monitor.log"
    scope = Scope.HOST
    note = "mean utilisation of all CPUs since the last sample, 0 to 1, from /proc/stat"

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._path = proc / "stat"
        self._last = (0, 0)

    def open(self) -> None:
        try:
            self._last = self._busy_and_total()
        except (OSError, ValueError) as error:
            raise SourceUnavailableError(f"{self._path} cannot be used: {error}") from error

    def sample(self, time_ms: int) -> Sequence[Sample]:
        busy, total = self._busy_and_total()
        busy_before, total_before = self._last
        self._last = busy, total
        passed = total - total_before
        if passed <= 0:  # the kernel counts in ticks of 10 ms: within one there is nothing to divide by
            return []
        used = min(max((busy - busy_before) / passed, 0.0), 1.0)
        return [Sample(time_ms, self.name, utilisation=used)]

    def log_entry(self, time_ms: int, samples: Sequence[Sample]) -> str:
        return value_log(time_ms, samples[0].utilisation, DIGITS)

    def close(self) -> None:
        """Nothing is held open."""

    def _busy_and_total(self) -> tuple[int, int]:
        with self._path.open(encoding="ascii") as lines:
            name, *ticks = next(lines).split()
        if name != "cpu" or len(ticks) < 5:
            raise ValueError("the first line is not the sum over all CPUs")
        # user nice system idle iowait irq softirq steal; guest time is part of user already.
        times = [int(tick) for tick in ticks[:8]]
        return sum(times) - times[3] - times[4], sum(times)


class MemoryUtilisation:
    """Memory that is not available to a new process without swapping, as a part of the whole."""

    name = "mem"
    log_name = "mem_monitor.log"
    scope = Scope.HOST
    note = "1 - MemAvailable / MemTotal, 0 to 1, from /proc/meminfo"

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._path = proc / "meminfo"

    def open(self) -> None:
        try:
            self._available_and_total_mib()
        except (OSError, ValueError, KeyError) as error:
            raise SourceUnavailableError(f"{self._path} cannot be used: {error}") from error

    def sample(self, time_ms: int) -> Sequence[Sample]:
        available, total = self._available_and_total_mib()
        used = total - available
        return [
            Sample(time_ms, self.name, utilisation=used / total, memory_used_mib=used, memory_total_mib=total)
        ]

    def log_entry(self, time_ms: int, samples: Sequence[Sample]) -> str:
        return value_log(time_ms, samples[0].utilisation, DIGITS)

    def close(self) -> None:
        """Nothing is held open."""

    def _available_and_total_mib(self) -> tuple[float, float]:
        lines = self._path.read_text(encoding="ascii").splitlines()
        kib = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines)}
        return kib["MemAvailable"] / KIB_PER_MIB, kib["MemTotal"] / KIB_PER_MIB
