"""What the index holds of a run, as rows of its tables: read from its folder, whatever state that is in."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING, Any

from run_benchmarks.history.places import Place
from utils.errors import FlagPerfError, raised
from utils.text_files import one_line, shortened

if TYPE_CHECKING:
    from run_benchmarks.plan.secrets import SecretsHere
    from run_benchmarks.results.round_result import RoundResult

LONGEST_TEXT = 1000  # characters
LARGEST_NUMBER = 10**9  # of a round, and of an exit code
Cells = dict[str, Any]


class State(str, Enum):
    """How far a run came."""

    GOES_ON = "goes on"
    ENDED = "ended"
    NOT_ENDED = "not ended"  # its controller was killed, or runs on a machine whose locks are not seen here
    UNREADABLE = "unreadable"


def entry_of(place: Place, secrets: SecretsHere) -> tuple[Cells, list[Cells]]:
    """The run that lies there, and its rounds; one that cannot be read says why, and loses no other."""
    from run_benchmarks.results.load import load_run

    try:
        run = load_run(place.path, secrets)
    except Exception as error:  # a stranger's folder may hold anything
        reason = error.message if isinstance(error, FlagPerfError) else raised(error)
        return _run(place, State.UNREADABLE, notes=[reason]), []
    state = State.NOT_ENDED if run.exit_code is None else State.ENDED
    code = run.exit_code if _is_sane(run.exit_code) else None
    absurd = [
        f"{each.case}: no round can have such a number" for each in run.results if not _is_sane(each.round)
    ]
    rounds = [_round(place, each) for each in run.results if _is_sane(each.round)]
    return _run(place, state, run.uid, run.started, code, (*run.notes, *absurd)), rounds


def _is_sane(number: int | None) -> bool:
    """Whether a number may stand in a table of whole ones."""
    return number is not None and abs(number) <= LARGEST_NUMBER


def _run(
    place: Place,
    state: State,
    uid: str = "",
    started: str = "",
    exit_code: int | None = None,
    notes: Iterable[str] = (),
) -> Cells:
    return {
        "key": place.key,
        "path": os.fsencode(place.path),
        "mark": place.mark,
        "name": place.name,
        "uid": _text(uid),
        "state": (State.GOES_ON if place.goes_on else state).value,
        "started": _text(started),
        "exit_code": exit_code,
        "notes": json.dumps(list(map(_text, notes))),
    }


def _round(place: Place, result: RoundResult) -> Cells:
    from run_benchmarks.comparison.derived import whole_figures

    whole = whole_figures(result)
    figures = {
        _text(name): {
            "value": each.value,
            "unit": _text(each.unit),
            # what is of a part, so that `compare` has no ratio of it, is marked too
            "caveat": _text(each.caveat or (whole[name].source if whole[name].value is None else "")),
            "scope": _text(each.scope),
        }
        for name, each in result.figures.items()
        if each.value is not None
    }
    return {
        "run": place.key,
        "case": _text(result.case),
        "round": result.round,
        "verdict": result.verdict.value,
        "rules": result.rules.stamp or "",
        "kind": _text(result.kind),
        "hosts": _text(", ".join(result.hosts)),
        "again": _text("; ".join(attempt.cause for attempt in result.attempts)),
        "started": _text(result.started),
        "figures": json.dumps(figures),
    }


def _text(text: str) -> str:
    """A stranger's text as a part of a line, which can be encoded."""
    return shortened(one_line(text), LONGEST_TEXT)
