"""What the monitor of a node costs, and what it costs a training beside it.

    .venv/bin/python benches/monitor.py [--turns 5] [--seconds 20] [--pairs 30] [--no-training]

As test.sh has set this machine up. The monitor samples every source that this machine has and eight GPUs of a STUB of
NVIDIA's library, once and ten times a second, as a process of its own; what it takes to start is told apart. Beside it
stand programs that are started for each sample, each with as many of grep, awk, sort and head behind it as public
FlagPerf's monitors have, and as they do every 5 s: mpstat (sysstat), free, an nvidia-smi (a STUB that asks eight GPUs
for less than the real one) and ipmitool, which asks a simulated BMC (openipmi). A sample is all of it, once. What a
machine takes for work that comes after a sleep changes by the hour, and hits both: so they are measured by turns, each
at its own interval; of each the median of its turns, and of the turns' ratios too.

What a page of memory costs on this machine after a second's rest, and at once, stands below the table: a sample of the
monitor touches some 1,200 of them.

The programs' time is with that of the loop which starts them. What a training beside the monitor loses is measured as
monitor_slowdown.py says.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
from monitor_slowdown import PATIENCE_S, WARM_UP_S, median_interval, slowdowns

CHECKOUT = Path(__file__).resolve().parents[1]
TRAINING = CHECKOUT / "training"
sys.path[:0] = [str(CHECKOUT), str(TRAINING)]

from run_benchmarks.results.table import aligned  # noqa: E402
from tests.fakes.nvml import compile_smi, compile_stub  # noqa: E402
from tests.run_benchmarks.meters.simulators import PASSWORD, USER, ipmi_bmc  # noqa: E402

GPUS, HOUR_S, MIB = 8, 3600, 2**20
FORKED_EVERY_S = 5


@dataclass(frozen=True)
class Cost:
    """What a monitor takes: once it runs, of a core; to start, s; memory, MiB; its files, bytes an hour."""

    hz: float
    core_share: float
    start_cpu_s: float
    memory_mib: float
    bytes_per_hour: float

    @property
    def sample_cpu_s(self) -> float:
        """Processor time of a sample of all sources, s."""
        return self.core_share / self.hz


def monitor_cost(python: str, hz: float, seconds: float, environment: dict[str, str]) -> Cost:
    """Of the monitor as a node runs it."""
    with tempfile.TemporaryDirectory() as folder:
        words = ("--log-dir", folder, "--vendor-dir", str(TRAINING / "nvidia"), "--interval", str(1 / hz))
        with running([python, "-m", "utils.monitors", *words], environment) as process:
            time.sleep(WARM_UP_S)
            begin, start_cpu_s, size = time.monotonic(), cpu_s(process), folder_bytes(folder)
            time.sleep(seconds)
            passed, used = time.monotonic() - begin, cpu_s(process) - start_cpu_s
            written, memory = folder_bytes(folder) - size, process.memory_info().rss
        return Cost(hz, used / passed, start_cpu_s, memory / MIB, written / passed * HOUR_S)


@contextmanager
def running(command: Sequence[str], environment: dict[str, str]) -> Iterator[psutil.Process]:
    """A process while it runs; it must not have ended by itself."""
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    try:
        yield psutil.Process(process.pid)
        if process.poll() is not None:
            sys.exit(f"it ended by itself with {process.returncode}: {command}")
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def cpu_s(process: psutil.Process) -> float:
    """Processor time that it has had, by Linux's clock of a process: psutil counts in 10 ms, three samples."""
    return time.clock_gettime(~process.pid << 3 | 2)


def folder_bytes(folder: str) -> int:
    """What its files hold."""
    return sum(path.stat().st_size for path in Path(folder).iterdir())


def forked_cost(pipelines: Sequence[str], seconds: float, environment: dict[str, str]) -> float:
    """Processor time of a sample by programs that are started for it at their interval, s."""
    samples = max(1, round(seconds / FORKED_EVERY_S))
    begin, begin_cpu_s = time.monotonic(), used_cpu_s()
    for number in range(samples):
        time.sleep(max(0.0, begin + number * FORKED_EVERY_S - time.monotonic()))
        for pipeline in pipelines:
            command = ["sh", "-c", pipeline]
            done = subprocess.run(command, env=environment, capture_output=True, timeout=PATIENCE_S)
            if not done.stdout:
                sys.exit(f"{pipeline} printed nothing: {done.stderr.decode()}")
    return (used_cpu_s() - begin_cpu_s) / samples


def used_cpu_s() -> float:
    """Processor time of this process, which starts the programs, and of its children that have ended, s."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + usage.ru_utime + usage.ru_stime


@contextmanager
def forked_pipelines(folder: Path) -> Iterator[dict[str, str]]:
    """Program -> how it is asked, of those that this machine has."""
    pipelines = {
        "mpstat": "mpstat -P ALL 1 1 | grep -v Average | grep all | awk '{print 1 - $NF / 100}'",
        "free": "free -m | grep Mem | awk '{print $3 / $2}'",
        "nvidia-smi": f"{compile_smi(folder)} | grep Default | awk '{{print $3, $5, $7}}'",
    }
    with ExitStack() as stack:
        if shutil.which("ipmi_sim") and shutil.which("ipmitool"):
            port = stack.enter_context(ipmi_bmc(folder / "bmc", {"Total_Power": 400})).port
            login = f"-I lanplus -H 127.0.0.1 -p {port} -C 3 -U {USER} -P {PASSWORD}"
            largest = "awk -F '|' '{print $2}' | awk '{print $1}' | sort -nr | head -n 1"
            pipelines["ipmitool"] = f"ipmitool {login} sdr list | grep Watts | {largest}"
        missing = {name for name in pipelines if name != "nvidia-smi" and not shutil.which(name)}
        print(f"left out, as not installed: {', '.join(missing)}" if missing else "", end="")
        yield {name: pipeline for name, pipeline in pipelines.items() if name not in missing}


@dataclass(frozen=True)
class Turn:
    """What each costs in one minute; `forked_s` is the processor time of a sample by programs."""

    once_a_second: Cost
    ten_times_a_second: Cost
    forked_s: float

    @property
    def ratio(self) -> float:
        """How many times cheaper a sample of the monitor is, taken once a second."""
        return self.forked_s / self.once_a_second.sample_cpu_s


def turn(python: str, pipelines: Iterable[str], seconds: float, environment: dict[str, str]) -> Turn:
    """Measure all, one after the other."""
    costs = [monitor_cost(python, hz, seconds, environment) for hz in (1.0, 10.0)]
    done = Turn(*costs, forked_cost([*pipelines], seconds, environment))
    monitor_ms, forked_ms = done.once_a_second.sample_cpu_s * 1000, done.forked_s * 1000
    print(f"a sample: monitor {monitor_ms:.2f} ms, programs {forked_ms:.2f} ms: {done.ratio:.1f}", flush=True)
    return done


def cost_table(turns: Sequence[Turn], programs: str) -> str:
    """Of the figures of all turns the medians."""
    rows = [
        [
            "",
            "of a core",
            "CPU s/h",
            "ms a sample",
            "times cheaper",
            "to start, CPU s",
            "memory, MiB",
            "MiB/h",
        ]
    ]
    forked_s = statistics.median(each.forked_s for each in turns)
    for costs in zip(*((each.once_a_second, each.ten_times_a_second) for each in turns), strict=True):
        share, sample_s, start_s, memory, written = (
            statistics.median(getattr(cost, name) for cost in costs)
            for name in ("core_share", "sample_cpu_s", "start_cpu_s", "memory_mib", "bytes_per_hour")
        )
        ratio = statistics.median(
            each.forked_s / cost.sample_cpu_s for each, cost in zip(turns, costs, strict=True)
        )
        row = [
            f"monitor, {costs[0].hz:g} Hz",
            f"{share:.2%}",
            f"{share * HOUR_S:.1f}",
            f"{sample_s * 1000:.2f}",
        ]
        rows.append([*row, f"{ratio:.1f}", f"{start_s:.2f}", f"{memory:.0f}", f"{written / MIB:.1f}"])
    share = forked_s / FORKED_EVERY_S
    row = [f"{programs}, once in {FORKED_EVERY_S} s", f"{share:.2%}", f"{share * HOUR_S:.1f}"]
    rows.append([*row, f"{forked_s * 1000:.2f}", "-", "-", "-", "-"])
    return aligned(rows)


def page_costs_us(rests: int = 9) -> tuple[float, float]:
    """Processor time that a page of this Python's own file takes to be read after a second's rest, and at once, µs."""
    mapped = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "/" in line}
    largest = max(filter(os.path.isfile, mapped), key=os.path.getsize)
    with Path(largest).open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as pages:

        def page_us() -> float:
            begin_ns = time.thread_time_ns()
            count = len(pages[:: mmap.PAGESIZE])
            return (time.thread_time_ns() - begin_ns) / 1000 / count

        page_us()
        rested, at_once = [], []
        for _ in range(rests):
            time.sleep(1)
            rested.append(page_us())
            at_once.append(page_us())
    return statistics.median(rested), statistics.median(at_once)


def main() -> None:
    """Measure, print the table and, last, one JSON object."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--turns", type=int, default=5, help="of the monitor at each rate and the programs (5)"
    )
    parser.add_argument("--seconds", type=float, default=20, help="of sampling in each turn (20)")
    parser.add_argument("--python", default=sys.executable, help="has psutil and nvidia-ml-py (this one)")
    parser.add_argument("--pairs", type=int, default=30, help="of windows in a training (30)")
    parser.add_argument("--no-training", action="store_true", help="leave the training out")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="flagperf-monitor-", dir="/var/tmp") as name:
        folder = Path(name)
        stub = compile_stub(folder)
        own = {"PYTHONPATH": str(TRAINING), "LD_LIBRARY_PATH": str(stub.parent)}
        path = f"{os.environ['PATH']}:/usr/sbin"
        environment = {**os.environ, **own, "STUB_NVML_DEVICES": str(GPUS), "PATH": path}
        os.environ["PATH"] = path
        with forked_pipelines(folder) as pipelines:
            turns = [
                turn(options.python, pipelines.values(), options.seconds, environment)
                for _ in range(options.turns)
            ]
        print(cost_table(turns, ", ".join(pipelines)))
        rested_us, at_once_us = page_costs_us()
        print(
            f"a page of memory: {rested_us:.2f} us after a rest of 1 s, {at_once_us:.2f} us at once",
            flush=True,
        )
        slower = [] if options.no_training else list(slowdowns(options.pairs, folder / "runs"))
    figures = {
        "core_share_1hz": round(statistics.median(each.once_a_second.core_share for each in turns), 5),
        "ratio_fork": round(statistics.median(each.ratio for each in turns), 1),
        "slowdown": round(statistics.median(slower), 5) if slower else None,
        "slowdown_interval": [round(end, 5) for end in median_interval(slower)] if len(slower) > 1 else None,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
