"""The life of one source: it is opened, sampled at every tick, written down, and closed."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from utils.errors import FlagPerfError, raised
from utils.monitors.files import TelemetryFile, open_log
from utils.monitors.source import Source, SourceUnavailableError
from utils.telemetry.lines import note_line
from utils.telemetry.plausible import POWERS, is_plausible
from utils.telemetry.quantities import BY_NAME
from utils.telemetry.records import Sample, Scope, SourceInfo, ticks_of

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


def _sound(sample: Sample, scope: Scope) -> Sample:
    """The sample without readings that are no numbers, or such as cannot be: they become its error.

    One of them in `telemetry.jsonl` would cost the node all that was measured there.
    """
    readings = vars(sample)
    unsound = [
        name
        for name, value in readings.items()
        if value is not None and name in BY_NAME and not _is_reading(name, value, scope)
    ]
    if not unsound:
        return sample
    words = [f"{name} = {repr(readings[name])[:60]} is no reading" for name in unsound]
    changes: dict[str, Any] = dict.fromkeys(unsound)
    return replace(sample, error="; ".join(filter(None, (sample.error, *words))), **changes)


def _is_reading(name: str, value: object, scope: Scope) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return False
    if name in POWERS and not is_plausible(value, scope):
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
        self.interval_s = interval_s
        self._last_failure = ""
        self.last_error = ""  # also where samples came again after it
        self._why_silent: str | None = None
        self.is_there = False

    def open(self) -> bool:
        """Whether there is anything to sample; where not, it is told why."""
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
        self.is_there = not reason
        return self.is_there

    def _tell_absent(self, reason: str) -> None:
        reason = _one_line(reason)
        self._declare(reason)
        self._log.warning("%s: not measured: %s", self.source.name, reason)
        self._note(f"not measured: {reason}")

    def _declare(self, why_silent: str) -> None:
        """Write why the source has no samples, empty for one that has; the last word on a source counts."""
        if why_silent == self._why_silent:
            return
        source, interval = self.source, self.interval_s
        info = SourceInfo(_now_ms(), source.name, source.scope, interval, source.note, why_silent)
        with suppress(OSError, ValueError):  # a full disk, or the order to stop came while it hung
            self._telemetry.write([info])
            self._why_silent = why_silent

    def tick(self, lag_s: float) -> None:
        """Take one sample, so many seconds after its time; `is_there` is whether there will be more."""
        self.counts.late += lag_s > self.interval_s / 2
        now, monotonic_ms = _now_ms(), int(time.monotonic() * 1000)
        try:
            samples = [_sound(sample, self.source.scope) for sample in self.source.sample(now)]
            self._write(now, monotonic_ms, samples)
            self._declare("")
        except SourceUnavailableError as error:
            self.is_there = False
            self._tell_absent(str(error))
            return
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
            read_ms = samples[0].time_ms  # a source may know better than the tick when it was read
            elapsed_ms = int(time.monotonic() * 1000) - monotonic_ms
            later_ms = min(max(0, read_ms - now), elapsed_ms)  # the wall clock may have been set
            self._telemetry.write(ticks_of(samples, monotonic_ms + later_ms))
            self._add_to_log(lambda: self.source.log_entry(read_ms, samples))

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
        with suppress(OSError):  # a full disk: the sources that share this thread are sampled all the same
            self._add_to_log(lambda: note_line(_now_ms(), text))

    def _add_to_log(self, text: Callable[[], str]) -> None:
        if self._log_file:
            self._log_file.write(text())
            self._log_file.flush()

    def close(self) -> None:
        """Give the source back, and say what became of its ticks."""
        try:
            self.source.close()
        except Exception as error:  # the samples are on disk; a library that fails to close changes nothing
            self._log.error("%s: close failed: %s", self.source.name, _described(error))
        self._log.info("%s: %s", self.source.name, self.counts)

    def close_log(self) -> None:
        """Nothing more will be said of the source."""
        if self._log_file:
            with suppress(OSError):  # what a full disk did not take
                self._log_file.close()


def _described(error: Exception) -> str:
    return _one_line(error.message if isinstance(error, FlagPerfError) else raised(error))


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
