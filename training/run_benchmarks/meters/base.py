"""What a meter outside the node is: a source that answers over a network, late, or not at all."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Sequence

from run_benchmarks.plan.host_ranges import fold
from run_benchmarks.plan.meters import Meter
from utils.errors import FlagPerfError
from utils.monitors.source import Source
from utils.telemetry.plausible import is_plausible
from utils.telemetry.records import Sample, Scope

# A meter that does not answer is asked again after a pause, which doubles with each failure: whoever is locked out
# after some wrong passwords must not be so by us.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 2.0, 60.0


class UnreachableError(FlagPerfError):
    """The meter does not answer: to ask it for something else would take as long."""


class RefusedError(UnreachableError):
    """The meter does not let this user in: asked again it would lock the account."""


class MeterSource(Source):
    """Power of a whole machine by what is outside of it. Each reading is stamped with the middle of its request."""

    scope = Scope.MACHINE

    def __init__(self, meter: Meter) -> None:
        self.meter = meter
        self.name = meter.kind
        self._shared_with = meter.shared_with
        self._describe("not read yet")
        self._error: FlagPerfError | None = None
        self._next_try, self._pause_s = 0.0, FIRST_PAUSE_S

    def open(self) -> None:
        """Nothing: a meter that is not there now may be so at the next sample."""

    def sample(self, time_ms: int) -> Sequence[Sample]:
        """One reading.

        Raises:
            FlagPerfError: there is none; while it is not asked, why there was none before.
        """
        begin = time.monotonic()
        if self._error and begin < self._next_try:
            raise self._error
        try:
            watts = self.read()
        except FlagPerfError as error:
            self._error = error
            forever = isinstance(error, RefusedError)
            self._next_try = time.monotonic() + (float("inf") if forever else self._pause_s)
            self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
            raise
        self._error, self._pause_s = None, FIRST_PAUSE_S
        middle_ms = round((time.monotonic() - begin) / 2 * 1000)
        return [Sample(time_ms + middle_ms, self.name, power_w=watts)]

    def read(self) -> float:
        """The power now, in W.

        Raises:
            FlagPerfError: the meter does not answer, or not with a power that a machine can have.
        """
        watts = self._read()
        if not is_plausible(watts, self.scope):
            raise FlagPerfError(f"{self.meter.where} says {watts:g} W, which no machine that runs draws")
        return watts

    @abstractmethod
    def _read(self) -> float:
        """The power now, in W; FlagPerfError where the meter does not tell it."""

    def _describe(self, what: str, *, is_shared: bool = False) -> None:
        """Say what is read: by which reading, and of which part of a machine."""
        shared = bool(self._shared_with) or is_shared
        self.scope = Scope.CHASSIS if shared else Scope.MACHINE
        with_whom = fold(self._shared_with) or "other machines"
        of_what = f"a chassis shared with {with_whom}" if shared else "the whole machine"
        self.note = f"power of {of_what} in W, by {self.meter.where}: {what}"
