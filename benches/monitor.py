"""What the monitor of a node costs, and what it costs a training beside it.

    .venv/bin/python benches/monitor.py [--seconds 60] [--pairs 30] [--no-training]

As test.sh has set this machine up. The monitor samples every source that this machine has and eight GPUs of a STUB of
NVIDIA's library, once and ten times a second, as a process of its own; what it takes to start is told apart. Beside it
stand programs that are started for each sample, each with as many of grep, awk, sort and head behind it as public
FlagPerf's monitors have, which do so every 5 s: mpstat (sysstat), free, an nvidia-smi (a STUB that asks eight GPUs for
less than the real one) and ipmitool, which asks a simulated BMC (openipmi). A sample is all of it, once.

Training: BERT's demo with two ranks as plain processes, and in it, pair by pair, ten seconds with the monitor and ten
while it is stopped (SIGSTOP), each pair begun by the other side than the one before. The monitor is awake for some
milliseconds at the beginning of each second of the monotonic clock, and sleeps for the rest of it. So what a window
loses is by how much its steps at these moments take longer than its other steps: what else goes on on the machine
changes by the second, hits both alike, and would tell ten times as much as the monitor if windows were compared by
their samples/s. The slow-down of a pair is the share of its time that is lost with the monitor less that without; of
the pairs the median, with its 95 % interval by bootstrap.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import psutil
from scipy import stats

CHECKOUT = Path(__file__).resolve().parents[1]
TRAINING = CHECKOUT / "training"
sys.path[:0] = [str(CHECKOUT), str(TRAINING)]

from run_benchmarks.results.table import aligned  # noqa: E402
from tests.fakes.nvml import compile_smi, compile_stub  # noqa: E402
from tests.run_benchmarks.e2e.harness import Bench  # noqa: E402
from tests.run_benchmarks.e2e.setup import make_data  # noqa: E402
from tests.run_benchmarks.meters.simulators import PASSWORD, USER, ipmi_bmc  # noqa: E402
from utils.events import EventName, read_events  # noqa: E402

GPUS, HOUR_S, MIB = 8, 3600, 2**20
WARM_UP_S = 8.0  # imports and the inventory: once, whatever the round takes
FORKED_SAMPLES, FORKED_EVERY_S = 10, 5
CASE = "bert:pytorch:cpu:1:2:1"
PATIENCE_S = 60.0
WINDOW_S, FEWEST_STEPS = 10.0, 20
AWAKE_MS = 50  # from a tick to the end of all that is done for it


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


def monitor_cost(hz: float, seconds: float, environment: dict[str, str]) -> Cost:
    """Of the monitor as a node runs it."""
    with tempfile.TemporaryDirectory() as folder:
        words = ("--log-dir", folder, "--vendor-dir", str(TRAINING / "nvidia"), "--interval", str(1 / hz))
        with running([sys.executable, "-m", "utils.monitors", *words], environment) as process:
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


def forked_cost(pipelines: Sequence[str], environment: dict[str, str]) -> float:
    """Processor time of a sample by programs that are started for it, s."""

    def children_s() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    begin = children_s()
    for _ in range(FORKED_SAMPLES):
        for pipeline in pipelines:
            command = ["sh", "-c", pipeline]
            done = subprocess.run(command, env=environment, capture_output=True, timeout=PATIENCE_S)
            if not done.stdout:
                sys.exit(f"{pipeline} printed nothing: {done.stderr.decode()}")
    return (children_s() - begin) / FORKED_SAMPLES


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


def slowdowns(pairs: int, folder: Path) -> Iterator[float]:
    """Of each pair, how much slower training was with the monitor: 0.01 is 1 %."""
    with endless_training(folder) as (log, monitor):
        for number in range(pairs):
            lost = {}
            for is_sampled in (True, False) if number % 2 else (False, True):
                monitor.send_signal(signal.SIGCONT if is_sampled else signal.SIGSTOP)
                begin_ms = time.time() * 1000
                time.sleep(WINDOW_S)
                lost[is_sampled] = lost_share(log, begin_ms)
            monitor.send_signal(signal.SIGCONT)
            print(f"pair {number + 1}: {lost[False]:.3%} lost without, {lost[True]:.3%} with", flush=True)
            yield lost[True] - lost[False]


@contextmanager
def endless_training(folder: Path) -> Iterator[tuple[Path, psutil.Process]]:
    """A run that trains and is sampled: rank 0's log, and the node's monitor."""
    bench = Bench(folder, ["localhost"], {})
    endless = {"max_steps": 10**7, "decay_steps": 10**7, "target_mlm_accuracy": 0.99, "cpu_threads": 1}
    bench.vendor_config("cpux1x2", {**endless, "eval_interval_samples": 10**9, "log_freq": 1})
    bench.test(
        CASES={CASE: str(make_data())},
        RUNTIME="process",
        PROCESS_PYTHON=sys.executable,
        FLAGPERF_PATH_HOST=str(folder / "host"),
    )
    run = bench.start()
    try:
        bench.wait_for_log(run, "samples/s")
        time.sleep(WARM_UP_S)
        (log,) = (folder / "host").rglob("rank0.out.log")
        (monitor,) = [each for each in psutil.process_iter() if is_monitor(each, log.parent)]
        yield log, monitor
    finally:
        run.terminate()
        run.communicate(timeout=PATIENCE_S)


def is_monitor(process: psutil.Process, folder: Path) -> bool:
    """Whether it is the Python that samples into `folder`, and not what started that."""
    with suppress(psutil.Error):
        words = process.cmdline()
        return words[1:3] == ["-m", "utils.monitors"] and str(folder) in words
    return False


def lost_share(log: Path, begin_ms: float) -> float:
    """Of the time since then, what the steps at the monitor's ticks took longer than the others."""
    ends = [
        event.time_ms
        for event in read_events(log)
        if event.name == EventName.STEP_END and event.time_ms > begin_ms
    ]
    clock_ms = (time.time() - time.monotonic()) * 1000
    steps: dict[bool, list[int]] = {True: [], False: []}
    for begin, end in pairwise(ends):
        steps[is_at_tick(begin - clock_ms, end - clock_ms)].append(end - begin)
    if len(steps[False]) < FEWEST_STEPS:
        sys.exit(f"{log}: {len(steps[False])} steps between ticks in {WINDOW_S:g} s: too few to compare with")
    longer_ms = sum(steps[True]) - len(steps[True]) * statistics.mean(steps[False])
    return longer_ms / (ends[-1] - ends[0])


def is_at_tick(begin_ms: float, end_ms: float) -> bool:
    """Whether a step was under way while the monitor took its samples; both by the monotonic clock."""
    next_tick_ms = ((begin_ms - AWAKE_MS) // 1000 + 1) * 1000
    return end_ms > next_tick_ms


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of the median."""
    drawn = stats.bootstrap((values,), np.median, method="percentile", rng=np.random.default_rng(1))
    return float(drawn.confidence_interval.low), float(drawn.confidence_interval.high)


def main() -> None:
    """Measure, print the table and, last, one JSON object."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60, help="of sampling at each rate (60)")
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
        costs = [monitor_cost(hz, options.seconds, environment) for hz in (1.0, 10.0)]
        with forked_pipelines(folder) as pipelines:
            forked_s, programs = forked_cost([*pipelines.values()], environment), ", ".join(pipelines)
        rows = [["", "of a core", "CPU s/h", "ms a sample", "to start, CPU s", "memory, MiB", "MiB/h"]]
        for cost in costs:
            row = [f"monitor, {cost.hz:g} Hz", f"{cost.core_share:.2%}", f"{cost.core_share * HOUR_S:.1f}"]
            row += [f"{cost.sample_cpu_s * 1000:.2f}", f"{cost.start_cpu_s:.2f}", f"{cost.memory_mib:.0f}"]
            rows.append([*row, f"{cost.bytes_per_hour / MIB:.1f}"])
        share = forked_s / FORKED_EVERY_S
        row = [f"{programs}, once in {FORKED_EVERY_S} s", f"{share:.2%}", f"{share * HOUR_S:.1f}"]
        rows.append([*row, f"{forked_s * 1000:.2f}", "-", "-", "-"])
        print(aligned(rows), flush=True)
        slower = [] if options.no_training else list(slowdowns(options.pairs, folder / "runs"))
    figures = {
        "core_share_1hz": round(costs[0].core_share, 5),
        "ratio_fork": round(forked_s / costs[0].sample_cpu_s, 1),
        "slowdown": round(statistics.median(slower), 5) if slower else None,
        "slowdown_interval": [round(end, 5) for end in median_interval(slower)] if len(slower) > 1 else None,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
