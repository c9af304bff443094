"""What a round has left on hosts that keep nothing, where the controller's disk has no room for it.

Such hosts are not given back, and the run begins no further round: once there is room `run.py resume` brings it home.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from run_benchmarks.full_disk import FULL
from run_benchmarks.results.round_result import Observation, RoundResult
from run_benchmarks.round_state import RoundState, has_record, unjudged, write_observation
from run_benchmarks.session import Session
from utils.records import Failure, FailureClass, Stage, Verdict


def saved(session: Session, state: RoundState, seen: Observation, keep: Callable[[], str] | None) -> bool:
    """Write what was seen of a round, so that it can be judged whatever becomes of the controller.

    Args:
        keep: as in Allocation.

    Returns:
        Whether its hosts may be given back. Else they are kept, and `session` has until when.
    """
    if keep is None or not state.without_room:
        write_observation(seen, _folder(session, seen))
        if keep is None or has_record(_folder(session, seen)):
            return True
    session.stranded.append(keep())
    return False


def stranded(session: Session, seen: Observation) -> RoundResult:
    """The result of a round whose hosts were kept; it is not written, for the round goes on when it is taken up."""
    remedy = (
        f"no further round is begun, so that its logs are not lost: free space there, and take the run up "
        f"{session.stranded[-1]}"
    )
    fault = Failure(Verdict.FAILED, Stage.JUDGE, FailureClass.CONTROLLER_ERROR, "", FULL, remedy=remedy)
    failure = seen.failure
    if failure and failure.failure_class is FailureClass.LOGS_NOT_COLLECTED:  # the full disk is why
        seen = replace(seen, failure=None)
    return unjudged(seen, fault)


def _folder(session: Session, seen: Observation) -> Path:
    return session.log_dir / seen.case / f"round{seen.round}"
