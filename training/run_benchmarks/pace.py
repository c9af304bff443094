"""How regularly a training reports, and after what silence it is taken for hung."""

from __future__ import annotations

import math
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
# Of a search an epoch is a step with its evaluation, and as long a gap as it took: many workers report in turn.
EPOCH = SearchEvent.EPOCH.value
NAMES = frozenset(each.value for each in EventName) | {EPOCH}


@dataclass(frozen=True)
class _Gap:
    """The time before an event that was read at `read_at` (monotonic); longest: of it and all before it."""

    read_at: float
    seconds: float
    longest: float


@dataclass
class Pace:
    """The gaps between rank 0's events, in seconds: by its own clock, for many events may be read at once, or by ours.

    saves: whether checkpoints are to be saved.
    """

    saves: bool = False
    _before: tuple[float, int] | None = None
    _gaps: deque[_Gap] = field(default_factory=lambda: deque(maxlen=GAPS_KEPT))
    _paused_at: float = -math.inf
    _counts: Counter[str] = field(default_factory=Counter)

    def note(self, event: Event, now: float) -> None:
        """An event that was read at `now` (monotonic)."""
        name, before, self._before = event.name, self._before, (now, event.time_ms)
        # the evaluation before training is as long as the others: what comes before it may take much longer
        has_begun = any(self._counts[each] for each in (EventName.TRAIN_START, EventName.STEP_END, EPOCH))
        if before is not None and (has_begun or name == EventName.INIT_EVALUATION):
            by_its_clock = (event.time_ms - before[1]) / 1000 if event.time_ms and before[1] else 0.0
            took = number_in(event.value, "seconds") if name == EPOCH else None
            took = took if took is not None and now - took >= self._paused_at else 0.0
            gap = max(now - before[0], by_its_clock, took)
            self._gaps.append(_Gap(now, gap, max(self._longest, gap)))
        if name in NAMES:
            self._counts[name] += 1

    def pause(self, since: float) -> None:
        """From `since` (monotonic) until now the training stood still, or who reads its events did.

        No gap that reaches into that time says anything of its pace: not the next one, nor one that was read meanwhile.
        """
        self._before, self._paused_at = None, since
        while self._gaps and self._gaps[-1].read_at > since:
            self._gaps.pop()

    @property
    def _longest(self) -> float:
        return self._gaps[-1].longest if self._gaps else 0.0

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
        counts = self._counts
        has_evaluated = any(counts[name] for name in (EventName.EVALUATE, EventName.INIT_EVALUATION, EPOCH))
        has_saved = not self.saves or counts[EventName.CHECKPOINT]
        is_training = not counts[EventName.TRAIN_END]
        return LEAST_S if has_evaluated and has_saved and is_training else LEAST_BEFORE_LONG_WORK_S
