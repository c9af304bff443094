"""The events of a search: what its controller writes into `controller.out.log`, and what is computed from it.

Lines of PerfLog (`utils.events`), each of one record here. `time_s` is of the search's clock: seconds since its first
start, which never go back and go on while the controller is away. The event's `time_ms` is wall-clock time. A
controller that is started again repeats all events of its state, with their times, behind a new SEARCH_START: what
counts of a log begins at its last one. Behind SEARCH_END stands the FINISHED that `utils.search.account` makes.

Workers are numbered from 0, trials from 1 in the order in which they are handed out, rounds, epochs, sessions and
attempts from 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any, ClassVar, Literal, get_args

from utils.events import Event

CONTROLLER_LOG = "controller.out.log"
# In the folder of the round's checkpoints, where there is one, else beside the log: all that is needed to go on.
STATE_FILE = "search.sqlite"
LONGEST_TEXT = 500  # characters of a text
LONGEST_LIST = 100  # items of a list
MOST_EDITS = 20  # of a trial: annealing comes to 14, and a log has many trials
MOST_EVENTS = 1_000_000  # of a search: three days of 512 workers that end an epoch in two minutes
MOST_BYTES = 2**29  # of the lines that hold them
LARGEST = 2**80  # of a number: the operations of a week on all chips that there are are fewer
NO_MORE_TRIALS = "all trials are handed out"  # why a worker may leave in order before the end
TrialState = Literal["done", "stopped", "failed", "lost", "cut_off"]
EndReason = Literal["deadline", "trials", "workers"]
TRIAL_STATES: tuple[str, ...] = get_args(TrialState)


class SearchEvent(str, Enum):
    """The names of a search's own events."""

    SEARCH_START = "SEARCH_START"
    SEARCH_RESUMED = "SEARCH_RESUMED"
    WORKER = "WORKER"
    TRIAL_START = "TRIAL_START"
    EPOCH = "EPOCH"
    TRIAL_END = "TRIAL_END"
    SEARCH_END = "SEARCH_END"


@dataclass(frozen=True)
class SearchRecord:
    """What all events have: when it happened, in seconds of the search's clock."""

    event: ClassVar[SearchEvent]
    time_s: float

    def __post_init__(self) -> None:
        """ValueError for what no controller writes: a number below 0, an accuracy above 1, a text without end."""
        for name, value in vars(self).items():
            problem = _problem(value, MOST_EDITS if name == "edits" else LONGEST_LIST)
            if problem or (name == "accuracy" and value is not None and value > 1):
                raise ValueError(f"{name} {problem or 'is above 1'}")


def _problem(value: Any, most: int = LONGEST_LIST) -> str:
    if isinstance(value, (int, float)):
        return "" if 0 <= value <= LARGEST else f"is not between 0 and {LARGEST}"
    if isinstance(value, str):
        return "" if len(value) <= LONGEST_TEXT and value.isprintable() else "is no line, or too long"
    if isinstance(value, tuple):
        return "has too many items" if len(value) > most else "".join(map(_problem, value))
    return ""


@dataclass(frozen=True)
class SearchStart(SearchRecord):
    """The controller was started: for the first time (`starts` is 1) or again.

    search: names it, the same at every start. away_s: seconds of `time_s` in which there was no controller.
    workers: how many there should be. search_seconds: after how many it ends, those away not counted.
    max_trials: after how many it ends; None: after none. epochs: of a trial at most, by round; the last of them in
    every later round.
    """

    event: ClassVar[SearchEvent] = SearchEvent.SEARCH_START
    search: str
    starts: int
    away_s: float
    workers: int
    search_seconds: float
    max_trials: int | None
    epochs: tuple[int, ...]
    seed: int


@dataclass(frozen=True)
class SearchResumed(SearchRecord):
    """A controller goes on. What stands before it is of earlier ones, the last of which was there until seen_s."""

    event: ClassVar[SearchEvent] = SearchEvent.SEARCH_RESUMED
    seen_s: float


@dataclass(frozen=True)
class Worker(SearchRecord):
    """A worker came or went.

    state: joined (also when it was started anew: the next `session`), lost (its heartbeats stayed away, or its
    session was replaced), back (the lost session is heard of again), left (the search is over for it).
    node_rank: of the node that it runs on. ranks: its own, a chip each. precision: what it trains in (fp16, bf16,
    fp32). training_samples, validation_samples: of an epoch. data_digest: names the data. waited_s: seconds in which
    the worker's chips have waited for a trial since it joined first, over all its sessions.
    """

    event: ClassVar[SearchEvent] = SearchEvent.WORKER
    worker: int
    session: int
    state: Literal["joined", "lost", "back", "left"]
    node_rank: int
    ranks: int
    precision: str
    training_samples: int
    validation_samples: int
    data_digest: str
    waited_s: float = 0.0
    reason: str = ""


@dataclass(frozen=True)
class TrialStart(SearchRecord):
    """A trial was handed to a worker; with another `attempt` where it was lost with the worker before.

    parent: the trial whose architecture was edited; None of a first one. edits: what was done to it, each a few words
    ("deepen relu_12"). layers, parameters: of the architecture. forward_operations: of a sample; training_operations:
    of its forward and backward pass. round: of this worker. epochs: at most. tuned: whether its hyper-parameters
    were searched for.
    """

    event: ClassVar[SearchEvent] = SearchEvent.TRIAL_START
    trial: int
    attempt: int
    worker: int
    round: int
    parent: int | None
    edits: tuple[str, ...]
    layers: int
    parameters: int
    forward_operations: int
    training_operations: int
    batch_size: int
    dropout: float
    kernel: int
    epochs: int
    tuned: bool = False


@dataclass(frozen=True)
class Epoch(SearchRecord):
    """A worker ended an epoch, its validation included.

    seconds: from the end of the epoch before, or the trial's own beginning, by the worker's clock. training_samples,
    validation_samples: that were really computed. accuracy: of the validation, 0 to 1. loss: mean of the training;
    None where it is not finite.
    """

    event: ClassVar[SearchEvent] = SearchEvent.EPOCH
    trial: int
    attempt: int
    worker: int
    epoch: int
    seconds: float
    training_samples: int
    validation_samples: int
    accuracy: float
    loss: float | None = None


@dataclass(frozen=True)
class TrialEnd(SearchRecord):
    """An attempt at a trial ended.

    state: done, stopped (it gained nothing any more), failed (the worker says why), lost (with its worker),
    cut_off (by the end of the search). epochs: that it came to. accuracy: its best; None without an epoch.
    """

    event: ClassVar[SearchEvent] = SearchEvent.TRIAL_END
    trial: int
    attempt: int
    worker: int
    state: TrialState
    epochs: int
    accuracy: float | None
    reason: str = ""


@dataclass(frozen=True)
class SearchEnd(SearchRecord):
    """The search is over, and all trials that were open have ended.

    reason: workers where none has been there for long. trials: handed out, each counted once. epochs: how many EPOCH
    there are behind the last SEARCH_START.
    """

    event: ClassVar[SearchEvent] = SearchEvent.SEARCH_END
    reason: EndReason
    trials: int
    epochs: int


_KINDS = (SearchStart, SearchResumed, Worker, TrialStart, Epoch, TrialEnd, SearchEnd)
RECORDS: Mapping[str, type[SearchRecord]] = {kind.event.value: kind for kind in _KINDS}
OF_WORKERS = (Worker, TrialStart, Epoch, TrialEnd)  # each is of one worker


def event_of(record: SearchRecord, time_ms: int) -> Event:
    """The record as an event of global rank 0, for `utils.events.format_line`; `time_ms` is when it happened."""
    value: Mapping[str, Any] = asdict(record)
    return Event(record.event.value, value, time_ms)
