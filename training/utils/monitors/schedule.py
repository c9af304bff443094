"""Sample every source once an interval until told to stop.

The first sample is taken at once and the last one at the order to stop: a short round loses neither end.

Each source that may have to wait for a device has a thread and a schedule of its own, so that one that hangs or fails
costs the others nothing. Those that read what the kernel holds in memory share one: to wake a thread costs more than
such a sample. Ticks are at fixed times (multiples of the interval by the monotonic clock): they do not drift, and those
of threads with one interval fall together. A tick whose time has passed by a whole interval is not made up for but
counted as missed.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue

from utils.monitors import SAMPLES_GRACE_S
from utils.monitors.files import TelemetryFile
from utils.monitors.frame import Sampler
from utils.monitors.source import Source
from utils.telemetry.lines import TELEMETRY_FILE

log = logging.getLogger("utils.monitors")


def run_together(samplers: Sequence[Sampler], stop: threading.Event, ticks: int | None) -> None:
    """Sample sources of one interval, one after the other at each tick, in this thread.

    Until `stop` is set, and then once more, or until `ticks` ticks have passed (None: for ever).
    """
    with ExitStack() as logs:
        for sampler in samplers:
            logs.callback(sampler.close_log)
        opened = [sampler for sampler in samplers if sampler.open()]
        _sample_until(opened, stop, ticks)
        for sampler in opened:
            sampler.close()


def _sample_until(samplers: Sequence[Sampler], stop: threading.Event, ticks: int | None) -> None:
    interval_s = samplers[0].interval_s if samplers else 1.0
    now = time.monotonic()
    start = now - now % interval_s  # threads of one interval tick at once: one awakening costs less than many
    tick = 0
    while samplers and (ticks is None or tick < ticks):
        due = start + tick * interval_s
        is_last = stop.wait(max(0.0, due - time.monotonic()))
        lag_s = time.monotonic() - due if tick and not is_last else 0.0
        for sampler in samplers:
            sampler.tick(lag_s)
        if is_last:  # what happened since the last tick belongs to the round too
            return
        following = max(tick + 1, int((time.monotonic() - start) / interval_s))
        for sampler in samplers:
            sampler.counts.missed += following - tick - 1
        samplers = [sampler for sampler in samplers if sampler.is_there]
        tick = following


def run_monitors(
    sources: Sequence[tuple[Source, float]],
    folder: Path,
    stop: threading.Event,
    ticks: int | None = None,
) -> list[Sampler]:
    """Sample all sources, each with its interval in s, into `folder` until `stop` is set; returns when all have ended.

    A source that hangs is left behind after a short grace, and said so.

    Raises:
        OSError: `folder` cannot be written to.
    """
    telemetry = TelemetryFile(folder / TELEMETRY_FILE)
    samplers = [Sampler(source, folder, telemetry, interval_s) for source, interval_s in sources]
    ends: SimpleQueue[None] = SimpleQueue()  # of each source, and of the waiting for the order to stop

    groups = _groups(samplers)

    def run(group: Sequence[Sampler]) -> None:
        try:
            run_together(group, stop, ticks)
        finally:
            ends.put(None)

    def wait_for_order() -> None:
        stop.wait()
        for _ in groups:
            ends.put(None)

    threads = [
        threading.Thread(
            target=run, args=(group,), name=", ".join(each.source.name for each in group), daemon=True
        )
        for group in groups
    ]
    for thread in (*threads, threading.Thread(target=wait_for_order, name="stop", daemon=True)):
        thread.start()
    for _ in groups:
        ends.get()  # looking now and then would cost as much as a source
    _join(threads)
    telemetry.close()
    return samplers


def _groups(samplers: Sequence[Sampler]) -> list[list[Sampler]]:
    """Which of them share a thread: those that never wait, by their interval; any other has its own."""
    groups: dict[tuple[float, int], list[Sampler]] = {}
    for number, sampler in enumerate(samplers, start=1):
        key = (sampler.interval_s, 0 if sampler.source.never_waits else number)
        groups.setdefault(key, []).append(sampler)
    return list(groups.values())


def _join(threads: Sequence[threading.Thread]) -> None:
    deadline = time.monotonic() + SAMPLES_GRACE_S
    for thread in threads:
        thread.join(timeout=max(0.0, deadline - time.monotonic()))
        if thread.is_alive():
            log.error("%s: did not answer within %.0f s of the order to stop", thread.name, SAMPLES_GRACE_S)
