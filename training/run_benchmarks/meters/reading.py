"""The meters of a round's nodes are read here, each by a thread of its own, into a file beside each node's folder."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from run_benchmarks.meters import open_meter
from run_benchmarks.plan.meters import Meter
from run_benchmarks.run_log import LOGGER
from utils.monitors import SAMPLES_GRACE_S
from utils.monitors.files import TelemetryFile
from utils.monitors.frame import Sampler
from utils.monitors.schedule import run_together
from utils.telemetry.records import SourceInfo, Tick

Hear = Callable[[Tick | SourceInfo], None]
Hide = Callable[[str], str]
NOBODY: Mapping[Path, Hear] = {}


class _HeardFile(TelemetryFile):
    """A file of which somebody hears what is written to it, in the thread that writes: without secrets."""

    def __init__(self, path: Path, hear: Hear | None, hide: Hide) -> None:
        super().__init__(path)
        self._hear, self._hide = hear, hide

    def write(self, records: Iterable[Tick | SourceInfo]) -> None:
        written = [_without_secrets(record, self._hide) for record in records]
        super().write(written)
        hear = self._hear
        if hear:
            for record in written:
                hear(record)

    def close(self) -> None:
        self._hear = None
        super().close()


def _without_secrets(record: Tick | SourceInfo, hide: Hide) -> Tick | SourceInfo:
    """The record without secrets in its texts: a BMC knows its password, and names chassis and sensors as it likes."""
    if not isinstance(record, SourceInfo):
        return record
    return replace(record, note=hide(record.note), reason=hide(record.reason))


@dataclass(frozen=True)
class MeterFailure:
    """Why not all samples of a meter were taken, and what became of them."""

    reason: str
    counts: str


class MeterReadings:
    """Reads meters from now on. A meter that hangs or fails costs nobody else anything.

    Args:
        meters: the file that is appended to -> the meter, and its interval in s.
        hears: file -> who hears of each record in the meter's own thread; none where nobody does.
        hide: takes secrets out of a text that is written.

    Raises:
        OSError: a file cannot be written to.
    """

    def __init__(
        self,
        meters: Mapping[Path, tuple[Meter, float]],
        hears: Mapping[Path, Hear] = NOBODY,
        hide: Hide = str,
    ) -> None:
        self._stop, self._stopped_at = threading.Event(), 0.0
        self._meters = {path: meter for path, (meter, _) in meters.items()}
        self._files: list[TelemetryFile] = []
        self.samplers: dict[Path, Sampler] = {}
        for path, (meter, interval_s) in meters.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._files.append(_HeardFile(path, hears.get(path), hide))
            self.samplers[path] = Sampler(
                open_meter(meter), path.parent, self._files[-1], interval_s, _log_of(meter)
            )
        self._threads = [
            threading.Thread(
                target=run_together,
                args=([sampler], self._stop, None),
                name=f"meter {path.name}",
                daemon=True,
            )
            for path, sampler in self.samplers.items()
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Take each one's last sample; nobody waits for it here."""
        if not self._stop.is_set():
            self._stopped_at = time.monotonic()
            self._stop.set()

    async def finish(self) -> None:
        """Wait for these, not for long: who does not answer is left behind."""
        self.stop()
        while any(thread.is_alive() for thread in self._threads):
            if time.monotonic() > self._stopped_at + SAMPLES_GRACE_S:
                break
            await asyncio.sleep(0.05)
        for file in self._files:
            with suppress(OSError):  # on a full disk; what there is of it is read all the same
                file.close()

    def failures(self) -> dict[Path, MeterFailure]:
        """Those of which samples failed, or no more were taken than missed, by their files."""
        return {
            path: MeterFailure(self._reason(path), str(sampler.counts))
            for path, sampler in self.samplers.items()
            if sampler.counts.failed or sampler.counts.missed >= sampler.counts.sampled
        }

    def _reason(self, path: Path) -> str:
        """Why, without the address: the same is said of many alike."""
        error = self.samplers[path].last_error.replace(self._meters[path].where, "its BMC")
        return error or "its answers take longer than the interval, or none came"


class _ToRunLog(logging.Handler):
    """Into the run's log what the frame says, for who looks for it: the result says what counts."""

    def emit(self, record: logging.LogRecord) -> None:
        LOGGER.debug(self.format(record))


_LOG = logging.getLogger("run_benchmarks.meters")
_LOG.propagate = False
_LOG.setLevel(logging.INFO)
_LOG.addHandler(_ToRunLog())


class _WithMeter(logging.LoggerAdapter[logging.Logger]):
    def process(self, msg: object, kwargs: object) -> tuple[object, object]:  # type: ignore[override]
        return f"{self.extra['meter'] if self.extra else ''}: {msg}", kwargs


def _log_of(meter: Meter) -> _WithMeter:
    return _WithMeter(_LOG, {"meter": meter.where})
