"""The phases of a rank's time: what each is by the training's events, and when it was. Figures and charts use the same.

Times are of the wall clock of the rank's host, as those of its telemetry. An event that ends something says how many
seconds that took, by a monotonic clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from utils.events import Event, EventName
from utils.numbers import number_in
from utils.telemetry.records import Window

# Of each kind; a reader of a log hands on some ten thousand events of a name.
MOST_SPELLS = 5_000
MOST_RATES = 20_000


class Phase(str, Enum):
    """A part of a round's time; no moment is in two of them."""

    IDLE = "idle"
    INIT = "init"
    WARM_UP = "warm_up"
    TRAIN = "train"
    EVALUATE = "evaluate"
    CHECKPOINT = "checkpoint"


DEFINITIONS: Mapping[Phase, str] = {
    Phase.IDLE: "from the first sample of the node to the start of its first rank",
    Phase.INIT: "INIT_START to INIT_END, or to TRAIN_START where a script has none: model, data, first evaluation",
    Phase.WARM_UP: "TRAIN_START to the first STEP_END: kernels are compiled, memory is laid out; of a case that "
    "measures, what comes before the first window of each operation",
    Phase.TRAIN: "TRAIN_START to TRAIN_END less warm-up, evaluations and the saving of checkpoints",
    Phase.EVALUATE: "the `eval_time` before each EVALUATE",
    Phase.CHECKPOINT: "the `checkpoint_time` before each CHECKPOINT",
}
# What ends with an event, and under which name that says how long it took.
_SPELLS = {
    EventName.EVALUATE.value: (Phase.EVALUATE, "eval_time"),
    EventName.CHECKPOINT.value: (Phase.CHECKPOINT, "checkpoint_time"),
}
_BOUNDS = {
    name.value
    for name in (EventName.INIT_START, EventName.INIT_END, EventName.TRAIN_START, EventName.TRAIN_END)
}
_Span = tuple[float, float]


@dataclass
class PhaseEvents:
    """Takes the events of one rank as they come, and tells when its phases were.

    ranks_start_ms: when its node's first rank was started, None where INIT_START does not say. more_spells:
    evaluations, checkpoints or warm-ups that are too many to be told apart. rates: of the training's steps the time
    and the samples/s, as far as its log is read.
    """

    ranks_start_ms: float | None = None
    more_spells: int = 0
    rates: list[tuple[float, float]] = field(default_factory=list)
    _at: dict[str, float] = field(
        default_factory=dict
    )  # of the bounds: INIT_START's first time, the others' last
    _spells: dict[Phase, list[_Span]] = field(default_factory=dict)
    _first_step_ms: float | None = None
    _step_begin_ms: float | None = None

    def take(self, event: Event) -> None:
        """Take in the next event; one without a time has no place."""
        if event.time_ms <= 0:
            return
        if event.name in _BOUNDS:
            self._bound(event)
        elif event.name in _SPELLS:
            phase, key = _SPELLS[event.name]
            self._spell(phase, event.time_ms - _milliseconds(event, key), event.time_ms)
        elif event.name == EventName.STEP_BEGIN:
            self._step_begin_ms = event.time_ms
        elif event.name == EventName.STEP_END:
            self._step(event)

    def training(self, end_ms: float | None = None) -> Window | None:
        """TRAIN_START to TRAIN_END, of several the last, or to `end_ms`; None without both, or without length."""
        return self._between(EventName.TRAIN_START, self._at.get(EventName.TRAIN_END.value, end_ms))

    def windows(self, end_ms: float | None = None) -> Mapping[Phase, Sequence[Window]]:
        """When each phase was that the events tell of; what was begun and not ended lasts until `end_ms`.

        IDLE is not among them: where it begins telemetry says.
        """
        phases: dict[Phase, Sequence[Window]] = {}
        begun = self._at.get(EventName.TRAIN_START.value, end_ms)
        init = self._between(EventName.INIT_START, self._at.get(EventName.INIT_END.value, begun))
        training = self.training(end_ms)
        if init:
            phases[Phase.INIT] = [init]
        if training:
            left = [(float(training.start_ms), float(training.end_ms))]
            spells = {**self._spells}
            if Phase.WARM_UP not in spells and self._first_step_ms is not None:
                spells[Phase.WARM_UP] = [(left[0][0], self._first_step_ms)]
            for phase in (Phase.EVALUATE, Phase.CHECKPOINT, Phase.WARM_UP):
                own = _united(spells.get(phase, ()))
                phases[phase] = _windows(_common(own, left))
                left = _without(left, own)
            phases[Phase.TRAIN] = _windows(left)
        return {phase: phases[phase] for phase in Phase if phases.get(phase)}

    def _bound(self, event: Event) -> None:
        if event.name == EventName.INIT_START:
            self._at.setdefault(event.name, event.time_ms)
            self.ranks_start_ms = number_in(event.value, "ranks_start_ms")
            return
        self._at[event.name] = event.time_ms
        if event.name == EventName.TRAIN_START:  # a script may begin its training anew
            self._spells.clear()
            self.rates.clear()
            self._first_step_ms = None

    def _step(self, event: Event) -> None:
        """A step of training, or an operation that was measured, which had a warm-up of its own."""
        rate = number_in(event.value, "seq/s")
        if rate is not None and len(self.rates) < MOST_RATES:
            self.rates.append((event.time_ms, rate))
        if "warm_up_time" in event.value:
            begin = self._step_begin_ms or event.time_ms
            self._spell(Phase.WARM_UP, begin, begin + _milliseconds(event, "warm_up_time"))
        elif self._first_step_ms is None:
            self._first_step_ms = event.time_ms

    def _spell(self, phase: Phase, start: float, end: float) -> None:
        spells = self._spells.setdefault(phase, [])
        if len(spells) >= MOST_SPELLS:
            self.more_spells += 1
        else:
            spells.append((start, end))

    def _between(self, first: EventName, end: float | None) -> Window | None:
        start = self._at.get(first.value)
        return Window(int(start), int(end)) if start and end and end > start else None


def _milliseconds(event: Event, key: str) -> float:
    return max(0.0, number_in(event.value, key) or 0.0) * 1000


def _windows(spans: Iterable[_Span]) -> list[Window]:
    """Those of at least a millisecond."""
    rounded = (Window(round(start), round(end)) for start, end in spans)
    return [each for each in rounded if each.end_ms > each.start_ms]


def _united(spans: Iterable[_Span]) -> list[_Span]:
    """In order of time, those that overlap as one."""
    united: list[_Span] = []
    for start, end in sorted(spans):
        if united and start <= united[-1][1]:
            united[-1] = (united[-1][0], max(end, united[-1][1]))
        elif end > start:
            united.append((start, end))
    return united


def _without(spans: Sequence[_Span], holes: Sequence[_Span]) -> list[_Span]:
    """What `holes` leave of `spans`; both are in order, and do not overlap among themselves."""
    if not spans:
        return []
    first, last = spans[0][0], spans[-1][1]
    edges = [first, *(edge for hole in holes for edge in hole), last]
    between = [(start, end) for start, end in zip(edges[::2], edges[1::2], strict=True) if end > start]
    return _common(between, spans)


def _common(first: Sequence[_Span], second: Sequence[_Span]) -> list[_Span]:
    """The time that lies in both; each is in order, and does not overlap within itself."""
    common: list[_Span] = []
    a = b = 0
    while a < len(first) and b < len(second):
        start, end = max(first[a][0], second[b][0]), min(first[a][1], second[b][1])
        if end > start:
            common.append((start, end))
        if first[a][1] < second[b][1]:
            a += 1
        else:
            b += 1
    return common
