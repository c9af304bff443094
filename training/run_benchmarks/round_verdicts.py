"""What rounds came to, in the run's journal and in result.json, which say the same: also where one found no room."""

from __future__ import annotations

from run_benchmarks.attempts import folder_of, is_repeated
from run_benchmarks.results.folder import RoundKey
from run_benchmarks.results.round_result import RoundResult, write_json
from run_benchmarks.resumption import Resumption
from run_benchmarks.round_state import has_record
from run_benchmarks.session import Session
from run_benchmarks.unforeseen import log_traceback
from utils.records import Stage


def note_verdict(session: Session, result: RoundResult) -> None:
    """Say in the journal what an attempt at a round came to, whose result was to be written before."""
    folder = folder_of(session, result)
    if is_repeated(session, result):
        _note(session, "attempt_ended", result)
    elif (folder / "result.json").is_file():
        _note(session, "round_ended", result)
    elif has_record(folder):  # else there is nothing yet to tell it by: a full disk may have room later
        session.unwritten.add(_key(result))
        _note(session, "round_ended", result, unwritten=True)


def results_so_far(session: Session, so_far: Resumption) -> list[RoundResult]:
    """The results that a run has which is taken up. Those that could not be written before are written now.

    The journal then has what they are, in the place of the fault by which they could not be written.
    """
    for result in so_far.results:
        if _key(result) not in so_far.unwritten:
            continue
        try:
            write_json(folder_of(session, result) / "result.json", result.as_dict())
            _note(session, "round_ended", result)
        except Exception as error:  # it may succeed when the run is taken up once more
            log_traceback(Stage.JUDGE, error)
            session.unwritten.add(_key(result))
    return list(so_far.results)


def without_record(session: Session, result: RoundResult) -> bool:
    """Whether a round has to be judged again, when the run is taken up, for its result could not be written."""
    return _key(result) in session.unwritten or not has_record(folder_of(session, result))


def _note(session: Session, event: str, result: RoundResult, **facts: object) -> None:
    verdict = result.verdict.value
    session.journal.write(event, case=result.case, round=result.round, verdict=verdict, **facts)


def _key(result: RoundResult) -> RoundKey:
    return RoundKey(result.case, result.round)
