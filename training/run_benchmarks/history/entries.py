"""What the index holds of a run: read from its folder, whatever state that is in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING

from run_benchmarks.history.places import Place
from utils.errors import FlagPerfError
from utils.figures import Figure
from utils.text_files import one_line, shortened

if TYPE_CHECKING:
    from run_benchmarks.results.round_result import RoundResult
    from run_benchmarks.results.summary import Run

LONGEST_TEXT = 1000  # characters
LARGEST_NUMBER = 10**9  # of a round, and of an exit code


class State(str, Enum):
    """How far a run came."""

    GOES_ON = "goes on"
    ENDED = "ended"
    NOT_ENDED = "not ended"  # its controller was killed, or runs on a machine whose locks are not seen here
    UNREADABLE = "unreadable"


@dataclass(frozen=True)
class RoundEntry:
    """A round. figures: those that have a value."""

    case: str
    number: int
    verdict: str
    rules: str
    kind: str
    hosts: str
    started: str
    figures: Mapping[str, Figure]


@dataclass(frozen=True)
class RunEntry:
    """A run. started: its local time with offset, or empty. notes: what is missing of it, or wrong with it."""

    state: State
    uid: str = ""
    started: str = ""
    exit_code: int | None = None
    rounds: tuple[RoundEntry, ...] = ()
    notes: tuple[str, ...] = ()


def read_entry(place: Place) -> RunEntry:
    """The run that lies there; one that cannot be read is an entry that says why, and loses no other."""
    from run_benchmarks.results.load import load_run

    try:
        return _entry(place, load_run(place.path))
    except FlagPerfError as error:
        return RunEntry(State.UNREADABLE, notes=(_text(error.message),))
    except Exception as error:  # a stranger's folder may hold anything
        return RunEntry(State.UNREADABLE, notes=(_text(f"{type(error).__name__}: {error}"),))


def seconds_of(moment: str) -> float | None:
    """A time as results have it, in seconds since the epoch; None where it is none."""
    try:
        return datetime.fromisoformat(moment).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def _entry(place: Place, run: Run) -> RunEntry:
    ended = State.NOT_ENDED if run.exit_code is None else State.ENDED
    absurd = [
        f"{each.case}: no round can have such a number" for each in run.results if not _is_sane(each.round)
    ]
    return RunEntry(
        state=State.GOES_ON if place.goes_on else ended,
        uid=_text(run.uid),
        started=_text(run.started),
        exit_code=run.exit_code if _is_sane(run.exit_code) else None,
        rounds=tuple(_round(each) for each in run.results if _is_sane(each.round)),
        notes=tuple(map(_text, (*run.notes, *absurd))),
    )


def _is_sane(number: int | None) -> bool:
    """Whether a number may stand in a table of whole ones."""
    return number is not None and abs(number) <= LARGEST_NUMBER


def _round(result: RoundResult) -> RoundEntry:
    return RoundEntry(
        case=_text(result.case),
        number=result.round,
        verdict=result.verdict.value,
        rules=result.rules.stamp or "",
        kind=_text(result.kind),
        hosts=_text(", ".join(result.hosts)),
        started=_text(result.started),
        figures={_text(name): each for name, each in result.figures.items() if each.value is not None},
    )


def _text(text: str) -> str:
    """A stranger's text as a part of a line, which can be encoded."""
    return shortened(one_line(text), LONGEST_TEXT)
