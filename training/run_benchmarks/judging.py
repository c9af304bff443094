"""A round is judged in a thread, so that signals are heard; who asks twice to be let go is not kept waiting."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from run_benchmarks.commands import run_command
from run_benchmarks.failures import interrupted
from run_benchmarks.plan.records import CasePlan
from run_benchmarks.results.round_result import Observation, RoundResult
from run_benchmarks.round_state import judged, unjudged, write_observation, write_result
from run_benchmarks.run_log import LOGGER
from run_benchmarks.session import Interrupted, Session, unless_interrupted
from run_benchmarks.threads import in_thread
from utils.records import Stage


async def judge_round(session: Session, case: CasePlan, seen: Observation, folder: Path) -> RoundResult:
    """Judge a round by its logs in `folder` and write its result.

    A signal that asks for the end of a run that is ending already ends the judging too: the round is INTERRUPTED.
    """
    secrets = session.plan.secrets
    seen = write_observation(seen, folder)
    session.hurried.clear()  # what came before has hurried the clean-up
    try:
        work = in_thread(lambda: judged(case, seen, folder, secrets), "judge")
        result = await unless_interrupted(session.hurried, work)
    except Interrupted:
        later = f"judge it later from its logs: {run_command('show', str(session.log_dir), '--rescore')}"
        LOGGER.warning(f"{seen.case}, round {seen.round} is not judged: {later}")
        failure = replace(interrupted(Stage.JUDGE, session.interrupt.by), remedy=later)
        result = secrets.hide_in(unjudged(seen, failure))
    return write_result(result, folder)
