"""A run that did not come to its end and has no controller any more: why, and since when, by its folder."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass

from run_benchmarks.names import RUN_LOG
from run_benchmarks.results.folder import RunFolder
from utils.numbers import number_in
from utils.text_files import one_line, shortened

DIED = "its controller has died"
UNSAVED = (
    "run_unsaved"  # the journal's word for a controller that ended by itself, and could not write all results
)
NOT_TAKEN_UP = "run_not_taken_up"  # of one that was refused, as its hosts' scheduler did not answer
NOT_LET_GO = "the hosts could not be let go of"  # so begins the note of a run that may still hold some
LONGEST_REASON = 300


@dataclass(frozen=True)
class LostController:
    """What became of a run's controller, as a clause; last_sign: when it last wrote something (s since the epoch).

    held: until when the hosts are there that were kept for what found no room.
    """

    fate: str
    last_sign: float
    held: str = ""


def lost_controller(folder: RunFolder) -> LostController:
    """What became of the controller of a run that goes on no more, and has not come to its end."""
    fate, held, signs, was_refused = DIED, "", [0.0], False
    for entry in folder.journal:
        if entry.get("event") in ("run_started", "run_resumed"):
            fate, held = DIED, ""
        elif entry.get("event") == UNSAVED:
            reason = shortened(one_line(str(entry.get("reason"))), LONGEST_REASON)
            fate = f"its controller ended and could not write all results ({reason})"
            held = shortened(one_line(str(entry.get("held") or "")), LONGEST_REASON)
        was_refused = entry.get("event") == NOT_TAKEN_UP
        signs = [0.0] if was_refused else signs  # whoever was refused has not watched the run either
        time_s = number_in(entry, "last_sign" if was_refused else "time")
        signs += [time_s] if time_s is not None and time_s <= time.time() else []
    if not was_refused:
        with suppress(OSError):
            signs.append((folder.path / RUN_LOG).stat().st_mtime)
    return LostController(fate, max(signs), held)
