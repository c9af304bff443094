"""What a training loses by the monitor of its node.

A part of monitor.py: BERT's demo with two ranks as plain processes, and in it, pair by pair, ten seconds with the
monitor and ten while it is stopped (SIGSTOP), each pair begun by the other side than the one before. The monitor is
awake for some milliseconds at the beginning of each second of the monotonic clock, and sleeps for the rest of it. So
what a window loses is by how much its steps at these moments take longer than its other steps: what else goes on on the
machine changes by the second, hits both alike, and would tell ten times as much as the monitor if windows were compared
by their samples/s. The slow-down of a pair is the share of its time that is lost with the monitor less that without; of
the pairs the median, with its 95 % interval by bootstrap.
"""

from __future__ import annotations

import signal
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path

import numpy as np
import psutil
from scipy import stats

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "training")]

from tests.run_benchmarks.e2e.harness import Bench  # noqa: E402
from tests.run_benchmarks.e2e.setup import make_data  # noqa: E402
from utils.events import EventName, read_events  # noqa: E402

CASE = "bert:pytorch:cpu:1:2:1"
WARM_UP_S = 8.0  # imports and the inventory: once, whatever the round takes
PATIENCE_S = 60.0
WINDOW_S, FEWEST_STEPS = 10.0, 20
AWAKE_MS = 50  # from a tick to the end of all that is done for it


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
