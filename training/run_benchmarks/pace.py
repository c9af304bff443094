"""How regularly a training reports, and after what silence it is taken for hung."""

from __future__ import annotations

import statistics
from collections import Counter, deque
from dataclasses import dataclass, field

from utils.events import Event, EventName
from utils.numbers import number_in
from utils.search.events import SearchEvent

# By default a silence is a hang that is so many times as long as most gaps between two reports, ...
OF_MEDIAN = 20.0
# ... so many times as long as the longest, for evaluations, checkpoints and the first step are gaps too, ...
OF_LONGEST = 5.0
# ... and so long in any case; longer where nobody knows how long work takes that is to come: the first evaluation, the
# first checkpoint, and what a script does when it has trained.
LEAST_S, LEAST_BEFORE_LONG_WORK_S = 300.0, 1800.0
# So many steps are a pace.
LEAST_STEPS = 5
GAPS_KEPT = 1000
# A pause that is told look by look is one pause: so much lies between two looks at most.
SAME_PAUSE_S = 1.0
# Of a search an epoch is a step with its evaluation, and as long a gap as it took: many workers report in turn.
EPOCH = SearchEvent.EPOCH.value
NAMES = frozenset(each.value for each in EventName) | {EPOCH}


@dataclass(frozen=True)
class _Gap:
    """The time before an event that was read at `read_at` (monotonic).

    whole: with its pauses; seconds: without; longest_before: of all gaps before it, also those not kept any more.
    """

    name: str
    read_at: float
    whole: float
    seconds: float
    longest_before: float


@dataclass
class Pace:
    """The gaps between rank 0's events, in seconds: by its own clock, for many events may be read at once, or by ours.

    saves: whether checkpoints are to be saved.
    """

    saves: bool = False
    _before: tuple[float, int] | None = None
    _gaps: deque[_Gap] = field(default_factory=lambda: deque(maxlen=GAPS_KEPT))
    _longest: float = 0.0
    _pauses: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=GAPS_KEPT))
    _counts: Counter[str] = field(default_factory=Counter)
    _timed: Counter[str] = field(default_factory=Counter)  # those of which it is known how long they took

    def note(self, event: Event, now: float) -> None:
        """An event that was read at `now` (monotonic)."""
        name, before, self._before = event.name, self._before, (now, event.time_ms)
        # the evaluation before training is as long as the others: what comes before it may take much longer
        has_begun = any(self._counts[each] for each in (EventName.TRAIN_START, EventName.STEP_END, EPOCH))
        if before is not None and (has_begun or name == EventName.INIT_EVALUATION):
            by_its_clock = (event.time_ms - before[1]) / 1000 if event.time_ms and before[1] else 0.0
            took = number_in(event.value, "seconds") if name == EPOCH else None
            self._keep(name, now, max(now - before[0], by_its_clock, took or 0.0))
        if name in NAMES:
            self._counts[name] += 1

    def pause(self, since: float, until: float) -> None:
        """Between these (monotonic) the training stood still, or who reads its events did.

        It is no part of any gap: neither of the next ones nor of those that were read meanwhile.
        """
        goes_on = bool(self._pauses) and since - self._pauses[-1][1] < SAME_PAUSE_S
        self._pauses.append((self._pauses.pop()[0] if goes_on else since, until))
        late: list[_Gap] = []
        while self._gaps and self._gaps[-1].read_at > since:
            late.append(gap := self._gaps.pop())
            self._timed[gap.name] -= 1
            self._longest = gap.longest_before
        for gap in reversed(late):
            self._keep(gap.name, gap.read_at, gap.whole)

    def _keep(self, name: str, read_at: float, whole: float) -> None:
        """A gap less its pauses, unless they are half of it or more: how long the training took is not known then."""
        begin = read_at - whole
        pauses = [min(until, read_at) - max(since, begin) for since, until in self._pauses if until > begin]
        seconds = whole - sum(pauses)
        if not pauses or seconds > whole / 2:
            self._gaps.append(_Gap(name, read_at, whole, seconds, self._longest))
            self._timed[name] += 1
            self._longest = max(self._longest, seconds)

    def is_usual(self, silence_s: float) -> bool:
        """Whether it has been silent for so long before."""
        return silence_s <= self._longest

    def limit_s(self, setting: float | None) -> float | None:
        """After how many seconds without an event the training is hung; None where that cannot be said.

        Args:
            setting: HANG_TIMEOUT, 0 for never; None for a limit that follows from what has been seen. There is none
                before some steps are done: to initialise and to compile takes its time.
        """
        if setting is not None:
            return setting or None
        if self._counts[EventName.STEP_END] + self._counts[EPOCH] < LEAST_STEPS or not self._gaps:
            return None
        median = statistics.median(gap.seconds for gap in self._gaps)
        return max(self._least_s(), OF_MEDIAN * median, OF_LONGEST * self._longest)

    def _least_s(self) -> float:
        has_evaluated = any(
            self._timed[name] for name in (EventName.EVALUATE, EventName.INIT_EVALUATION, EPOCH)
        )
        has_saved = not self.saves or self._timed[EventName.CHECKPOINT]
        is_training = not self._counts[EventName.TRAIN_END]
        return LEAST_S if has_evaluated and has_saved and is_training else LEAST_BEFORE_LONG_WORK_S
