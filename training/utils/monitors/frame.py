"""Sample every source once an interval until told to stop, and write down what it says.

The first sample is taken at once and the last one at the order to stop: a short round loses neither end.

Each source has a thread and a schedule of its own, so that one that hangs or fails costs the others
nothing. Ticks are at fixed times (multiples of the interval by the monotonic clock): they do not drift, and those
of sources with one interval fall together. A tick whose time has passed by a whole interval is not made up for but
counted as missed.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from typing import IO, TYPE_CHECKING, Any

from utils.errors import FlagPerfError, raised
from utils.monitors import SAMPLES_GRACE_S
from utils.monitors.source import Source, SourceUnavailableError
from utils.telemetry.lines import TELEMETRY_FILE, note_line, record_line
from utils.telemetry.quantities import BY_NAME
from utils.telemetry.records import Sample, SourceInfo, Tick, ticks_of

if TYPE_CHECKING:
    Log = logging.Logger | logging.LoggerAdapter[logging.Logger]

log = logging.getLogger("utils.monitors")

NO_ANSWER = "it has not answered: its open or its first sample did not come to an end"


@dataclass
class Counts:
    """What became of a source's ticks. `late` ticks began more than half an interval after their time."""

    sampled: int = 0
    failed: int = 0
    late: int = 0
    missed: int = 0

    def __str__(self) -> str:
        return f"{self.sampled} samples, {self.failed} failed, {self.late} late, {self.missed} missed"


class TelemetryFile:
    """A file of telemetry, shared by the sources' threads: whole lines only, on disk after every tick."""

    def __init__(self, path: Path) -> None:
        self._file = open_log(path)
        self._lock = threading.Lock()

    def write(self, records: Iterable[Tick | SourceInfo]) -> None:
        """Append the records as one write."""
        with self._lock:
            self._file.write("".join(map(record_line, records)))
            self._file.flush()

    def close(self) -> None:
        """Nothing can be written from now on."""
        with self._lock:
            self._file.close()


def open_log(path: Path) -> IO[str]:
    """Open a log to append to it; half a line that a killed monitor left at its end is cut off first."""
    if path.exists():
        whole = path.read_bytes().rpartition(b"\n")
        path.write_bytes(whole[0] + whole[1])
    return path.open("a", encoding="utf-8")


def _sound(sample: Sample) -> Sample:
    """The sample without readings that are no numbers, or below 0 where that cannot be: they become its error.

    One of them in `telemetry.jsonl` would cost the node all that was measured there.
    """
    readings = vars(sample)
    unsound = [
        name for name in BY_NAME if readings[name] is not None and not _is_reading(name, readings[name])
    ]
    if not unsound:
        return sample
    words = [f"{name} = {repr(readings[name])[:60]} is no reading" for name in unsound]
    changes: dict[str, Any] = dict.fromkeys(unsound)
    return replace(sample, error="; ".join(filter(None, (sample.error, *words))), **changes)


def _is_reading(name: str, value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return False
    return value >= 0 or BY_NAME[name].may_be_negative


class Sampler:
    """The life of one source: open it, sample it at every tick, write its log, close it."""

    def __init__(
        self, source: Source, folder: Path, telemetry: TelemetryFile, interval_s: float, log: Log = log
    ) -> None:
        self.source = source
        self.counts = Counts()
        self._log_file = open_log(folder / source.log_name) if source.log_name else None
        self._telemetry = telemetry
        self._log = log
        self._interval_s = interval_s
        self._last_failure = ""
        self.last_error = ""  # also where samples came again after it
        self._why_silent: str | None = None

    def run(self, stop: threading.Event, ticks: int | None) -> None:
        """Sample until `stop` is set, and then once more, or until `ticks` ticks have passed (None: for ever)."""
        with self._log_file or nullcontext():
            if self._open():
                try:
                    self._sample_until(stop, ticks)
                except SourceUnavailableError as error:
                    self._tell_absent(str(error))
                self._close()

    def _sample_until(self, stop: threading.Event, ticks: int | None) -> None:
        now = time.monotonic()
        start = (
            now - now % self._interval_s
        )  # sources of one interval tick at once: one awakening costs less than many
        tick = 0
        while ticks is None or tick < ticks:
            due = start + tick * self._interval_s
            if stop.wait(max(0.0, due - time.monotonic())):
                self._tick(lag_s=0.0)  # what happened since the last tick belongs to the round too
                return
            self._tick(lag_s=time.monotonic() - due if tick else 0.0)
            tick = self._next_tick(tick, time.monotonic() - start)

    def _open(self) -> bool:
        reason = ""
        self._declare(NO_ANSWER)  # what hangs from here on has said why nothing is measured
        try:
            self.source.open()
        except SourceUnavailableError as error:
            reason = str(error)
        except Exception as error:  # a source that breaks is one that is not there
            reason = _described(error)
        if reason:
            self._tell_absent(reason)
        else:
            self._log.info("%s: %s", self.source.name, self.source.note)
        return not reason

    def _tell_absent(self, reason: str) -> None:
        reason = _one_line(reason)
        self._declare(reason)
        self._log.warning("%s: not measured: %s", self.source.name, reason)
        self._note(f"not measured: {reason}")

    def _declare(self, why_silent: str) -> None:
        """Write why the source has no samples, empty for one that has; the last word on a source counts."""
        if why_silent == self._why_silent:
            return
        source, interval = self.source, self._interval_s
        info = SourceInfo(_now_ms(), source.name, source.scope, interval, source.note, why_silent)
        with suppress(OSError, ValueError):  # a full disk, or the order to stop came while it hung
            self._telemetry.write([info])
            self._why_silent = why_silent

    def _tick(self, lag_s: float) -> None:
        self.counts.late += lag_s > self._interval_s / 2
        now, monotonic_ms = _now_ms(), int(time.monotonic() * 1000)
        try:
            samples = [_sound(sample) for sample in self.source.sample(now)]
            self._write(now, monotonic_ms, samples)
            self._declare("")
        except SourceUnavailableError:
            raise
        except Exception as error:  # whatever a vendor's library raises must not end the monitor
            self.counts.failed += 1
            if not self.counts.sampled:
                self._declare(_described(error))
            self._report(_described(error))
            return
        self.counts.sampled += 1
        self._report("; ".join(f"device {s.device}: {s.error}" for s in samples if s.error))

    def _write(self, now: int, monotonic_ms: int, samples: Sequence[Sample]) -> None:
        if samples:
            self._telemetry.write(ticks_of(samples, monotonic_ms))
            self._add_to_log(lambda: self.source.log_entry(now, samples))

    def _next_tick(self, tick: int, elapsed_s: float) -> int:
        due = int(elapsed_s / self._interval_s)
        self.counts.missed += max(0, due - tick - 1)
        return max(tick + 1, due)

    def _report(self, reason: str) -> None:
        """Say once that a failure began, changed or ended: a line a second would bury the log."""
        if reason == self._last_failure:
            return
        self._last_failure = reason
        self.last_error = reason or self.last_error
        if reason:
            self._log.error("%s: sample failed: %s", self.source.name, reason)
            self._note(f"sample failed: {reason}")
        else:
            self._log.info("%s: samples again", self.source.name)
            self._note("samples again")

    def _note(self, text: str) -> None:
        self._add_to_log(lambda: note_line(_now_ms(), text))

    def _add_to_log(self, text: Callable[[], str]) -> None:
        if self._log_file:
            self._log_file.write(text())
            self._log_file.flush()

    def _close(self) -> None:
        try:
            self.source.close()
        except Exception as error:  # the samples are on disk; a library that fails to close changes nothing
            self._log.error("%s: close failed: %s", self.source.name, _described(error))
        self._log.info("%s: %s", self.source.name, self.counts)


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

    def run(sampler: Sampler) -> None:
        try:
            sampler.run(stop, ticks)
        finally:
            ends.put(None)

    def wait_for_order() -> None:
        stop.wait()
        for _ in samplers:
            ends.put(None)

    threads = [
        threading.Thread(target=run, args=(sampler,), name=sampler.source.name, daemon=True)
        for sampler in samplers
    ]
    for thread in (*threads, threading.Thread(target=wait_for_order, name="stop", daemon=True)):
        thread.start()
    for _ in samplers:
        ends.get()  # looking now and then would cost as much as a source
    _join(threads)
    telemetry.close()
    return samplers


def _join(threads: Sequence[threading.Thread]) -> None:
    deadline = time.monotonic() + SAMPLES_GRACE_S
    for thread in threads:
        thread.join(timeout=max(0.0, deadline - time.monotonic()))
        if thread.is_alive():
            log.error("%s: did not answer within %.0f s of the order to stop", thread.name, SAMPLES_GRACE_S)


def _described(error: Exception) -> str:
    return _one_line(error.message if isinstance(error, FlagPerfError) else raised(error))


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
