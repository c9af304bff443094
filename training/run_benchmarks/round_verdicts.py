"""What rounds came to, in the run's journal and in result.json, which say the same: also where one found no room."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from run_benchmarks.attempts import folder_of, is_repeated
from run_benchmarks.commands import run_command
from run_benchmarks.exit_code import ExitCode
from run_benchmarks.plan.records import CasePlan
from run_benchmarks.results.folder import RoundKey, RunFolder, read_observation
from run_benchmarks.results.round_result import Observation, RoundResult, write_json
from run_benchmarks.resumption import Resumption
from run_benchmarks.round_state import has_record, judged, unjudged
from run_benchmarks.run_log import LOGGER
from run_benchmarks.session import Session
from run_benchmarks.unforeseen import log_traceback
from utils.errors import FlagPerfError
from utils.records import Failure, FailureClass, Stage, Verdict


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

    The journal then has what they are, in the place of the fault by which they could not be written. A round that had
    ended, and has nothing that can be judged, has failed; the others keep what they are.
    """
    there = {_key(each) for each in so_far.results}
    ended = [(case, key) for case, key in _planned(session) if key in so_far.ended]
    results = [*so_far.results, *(_judged_now(session, case, key) for case, key in ended if key not in there)]
    for result in results:
        is_unwritten, folder = _key(result) in so_far.unwritten, folder_of(session, result)
        if not is_unwritten and has_record(folder):
            continue
        try:
            folder.mkdir(parents=True, exist_ok=True)  # it may be gone
            write_json(folder / "result.json", result.as_dict())
            if is_unwritten:
                _note(session, "round_ended", result)
        except Exception as error:  # it may succeed when the run is taken up once more
            log_traceback(Stage.JUDGE, error)
            session.unwritten.add(_key(result))
    return results


def without_record(session: Session, result: RoundResult) -> bool:
    """Whether a round has to be judged again, when the run is taken up, for its result could not be written."""
    return _key(result) in session.unwritten or not has_record(folder_of(session, result))


def exit_code_of(session: Session, results: Sequence[RoundResult]) -> int:
    """What a run ends with whose rounds came to this: good only where each that it was to make has a good result."""
    if session.interrupt.is_set():
        return ExitCode.INTERRUPTED
    succeeded = all(result.verdict.is_success for result in results)
    missing = {key for _, key in _planned(session)}.difference(map(_key, results))
    return ExitCode.SUCCESS if results and succeeded and not missing else ExitCode.NOT_CONVERGED


def _planned(session: Session) -> Iterator[tuple[CasePlan, RoundKey]]:
    for case in session.plan.cases:
        yield from ((case, RoundKey(case.settings.name, number)) for number in session.plan.rounds(case))


def _judged_now(session: Session, case: CasePlan, key: RoundKey) -> RoundResult:
    """The result of a round that had ended, and was not judged so far: as it would have been at its end."""
    folder = RunFolder(session.log_dir)
    path, secrets = folder.round_path(key), session.plan.secrets
    try:
        if seen := read_observation(folder, key):
            return judged(case, seen, path, secrets)
        folder.notes.append(f"{path / 'round.json'} is not there")
    except FlagPerfError as error:
        folder.note(error)
    remedy = f"restore it, and judge the round: {run_command('show', str(session.log_dir), '--rescore')}"
    message = f"the round had ended, and cannot be judged: {folder.notes[-1]}"
    LOGGER.error(f"{key}: {message}")
    fault = Failure(Verdict.FAILED, Stage.JUDGE, FailureClass.CONTROLLER_ERROR, "", message, remedy=remedy)
    seen = Observation(case=key.case, round=key.number, hosts=(), started="", time_s=None)
    return secrets.hide_in(unjudged(seen, fault))


def _note(session: Session, event: str, result: RoundResult, **facts: object) -> None:
    verdict = result.verdict.value
    session.journal.write(event, case=result.case, round=result.round, verdict=verdict, **facts)


def _key(result: RoundResult) -> RoundKey:
    return RoundKey(result.case, result.round)
