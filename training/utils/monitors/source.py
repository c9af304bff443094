"""What a monitor samples: what every source is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from utils.telemetry.records import Sample, Scope


class SourceUnavailableError(Exception):
    """This machine has no such source. The text is the reason, for the log and for the figure's `null`."""


class Source(ABC):
    """Something on this machine that can be sampled.

    `open` is called first, once. `sample` is called at every tick from one thread; what it raises is logged and the
    source is asked again at the next tick, but for SourceUnavailableError, its end. It starts no process: a monitor
    must not cost what it measures.
    """

    name: str
    scope: Scope
    note: str
    never_waits: bool = (
        False  # it reads what the kernel holds in memory, and shares a thread with others that do
    )
    log_name: str = ""  # of a text log beside telemetry.jsonl; those that FlagPerf documents have one

    @abstractmethod
    def open(self) -> None:
        """Find the source and take a first reading where values are differences.

        Raises:
            SourceUnavailableError: there is nothing to sample.
        """

    @abstractmethod
    def sample(self, time_ms: int) -> Sequence[Sample]:
        """One sample a device, all stamped `time_ms`, or when they were read; none where there is nothing to say yet.

        Raises:
            SourceUnavailableError: it has turned out that there is nothing to sample.
        """

    def log_entry(self, time_ms: int, samples: Sequence[Sample]) -> str:
        """The samples, of which there is at least one, in the documented form of the source's log."""
        raise NotImplementedError(f"{self.name} has no log")

    def close(self) -> None:  # noqa: B027 - one that holds nothing need not say so
        """Give back what `open` took."""
