"""A run: preflight, then every round of every case, then the summary; nothing of it stays on the hosts."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from run_benchmarks.attempts import (
    is_repeated,
    on_present_hosts,
    prepare_hosts,
    restore_spares,
    set_aside,
)
from run_benchmarks.commands import run_command
from run_benchmarks.display.base import Display
from run_benchmarks.exit_code import ExitCode
from run_benchmarks.full_disk import FULL, is_full
from run_benchmarks.health import check_standing_hosts, refusal_of, report_health
from run_benchmarks.hosts.base import NotTakenUpError
from run_benchmarks.interruption import interruptible
from run_benchmarks.leaving import leave, leave_once_more
from run_benchmarks.names import RunId
from run_benchmarks.origin import harness_of
from run_benchmarks.plan.as_dict import plan_as_dict
from run_benchmarks.plan.records import CasePlan, Plan
from run_benchmarks.plan.unchanged import plan_digest
from run_benchmarks.results.controller import NOT_LET_GO, UNSAVED
from run_benchmarks.results.folder import RoundKey
from run_benchmarks.results.last_words import cause_in
from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.results.shared import Shared
from run_benchmarks.results.shortfall import advice
from run_benchmarks.results.summary import Run, write_summary
from run_benchmarks.resumption import Resumption, RoundSoFar
from run_benchmarks.round import Round
from run_benchmarks.round_verdicts import exit_code_of, results_so_far, without_record
from run_benchmarks.run_log import LOGGER
from run_benchmarks.session import (
    Interrupted,
    Session,
    in_time,
    open_session,
    unless_broken_off,
    unless_interrupted,
)
from run_benchmarks.unforeseen import sentence_of, traceback_text
from utils.records import Stage

CLOSE_TIMEOUT_S = 120.0


async def run_plan(
    plan: Plan,
    run: RunId,
    log_dir: Path,
    display: Display,
    earlier_signals: Sequence[signal.Signals],
    so_far: Resumption | None = None,
    stopped_by: str = "",
) -> Run:
    """Run the whole plan; the summary is written to `log_dir` on every path out.

    Args:
        earlier_signals: those that came since the run had a folder, and more while it gets ready to heed them.
        so_far: what there is of the run already, whose controller has died.
        stopped_by: who wants it to be ended in order, and not gone on with.
    """
    session = open_session(plan, run, log_dir, display, journal=so_far.journal if so_far else None)
    harness = await asyncio.to_thread(harness_of, plan.training_dir, session.tree.digest)
    session = replace(session, harness=harness)
    notes = [so_far.note] if so_far else []
    _note_begin(session, so_far)
    results = results_so_far(session, so_far) if so_far else []
    display.run_started(run, plan, tuple(results))
    with interruptible(session, earlier_signals, stopped_by):
        try:
            code = await _check_and_run(session, results, notes, so_far)
        except NotTakenUpError:
            raise
        except BaseException:
            await _leave_hosts(session)
            raise
        left = await _leave_hosts(session)
        results += _last_attempt(so_far, results)
        notes += [*_ended_early(session), *_not_run(session, results, so_far), *left]
        planned = sum(len(plan.rounds(case)) for case in plan.cases)
        checks = session.checks
        end = Run(run.name, run.uid, run.started, code, tuple(results), checks, tuple(notes), planned)
        summary = _summed_up(session, plan.secrets.hide_in(end))
        session.journal.close()
    return summary


def _note_begin(session: Session, so_far: Resumption | None) -> None:
    """Say in the journal with what the run begins, or goes on."""
    run, plan = session.run, session.plan
    if so_far:
        session.unclean.update(host.name for host in session.allocator.standing)
        session.kept.update(so_far.kept)
        restore_spares(session, so_far.replaced)
        session.journal.write("run_resumed", uid=run.uid)
        return
    earlier = {"continue_from": plan.continue_from} if plan.continue_from else {}
    digests = {"plan": plan_digest(plan_as_dict(plan)), "tree": session.tree.digest}
    session.journal.write("run_started", run=run.name, uid=run.uid, started=run.started, **digests, **earlier)


async def _check_and_run(
    session: Session, results: list[RoundResult], notes: list[str], so_far: Resumption | None
) -> int:
    """Preflight of the hosts that are there, then the cases; the rounds that ended stand in `results`.

    notes: gets why the run ended before its last round.
    """
    try:
        if so_far:
            await _take_up(session, so_far)
        if not session.checks and not (so_far and so_far.is_attached):  # a scheduler's hosts are of the round
            await unless_interrupted(session.interrupt, check_standing_hosts(session))
            report_health(session.checks)
        if refusal := refusal_of(session.checks):
            LOGGER.error("Step 2 is left out: nothing is launched before every host is healthy")
            notes.append(refusal)
            return ExitCode.UNHEALTHY
        await _run_cases(session, results, so_far)
    except NotTakenUpError:
        raise
    except Interrupted:
        notes.append(f"nothing {'more ' if so_far else ''}was launched")
        LOGGER.warning(f"Step 2 is left out: {notes[-1]}")
    except Exception as error:  # the rounds that there are make a summary all the same
        notes.append(f"the run broke off: {sentence_of(error)}")
        LOGGER.bind(detail=traceback_text(error)).error(notes[-1])
        return exit_code_of(session, results) or ExitCode.NOT_CONVERGED
    return exit_code_of(session, results)


async def _take_up(session: Session, so_far: Resumption) -> None:
    """What tasks that were launched use was checked before; else nothing of the run may be in the way of its checks."""
    if so_far.is_attached:
        session.checks.update(so_far.checks)
    else:
        await leave(session, session.allocator.standing)


async def _run_cases(session: Session, results: list[RoundResult], so_far: Resumption | None) -> None:
    is_ending = session.interrupt.is_set()
    LOGGER.info(f"Step 2: {'end the round that was under way' if is_ending else 'run the cases'}")
    shared = Shared()
    for case in session.plan.cases:
        name = case.settings.name
        for number in sorted(session.plan.done.get(name, ())):
            LOGGER.info(f"case {name}, round {number}: had succeeded; not run again")
        for number in session.plan.rounds(case):
            key = RoundKey(name, number)
            if so_far and key in so_far.ended:
                continue
            begun = so_far.unfinished.get(key) if so_far else None
            if session.stranded or (session.interrupt.is_set() and not (begun and begun.seen)):
                return
            how = f"to be ended at the stage {begun.stage}" if begun and is_ending else begun or "start"
            LOGGER.info(f"case {name}, round {number} of {case.settings.repeat}: {how}")
            result = shared.one(await _run_round(session, case, number, begun))
            results.append(result)
            session.display.round_judged(result)
            with _noted("what the round ended with could not be logged", []):
                _log_result(result, session.log_dir)


async def _run_round(session: Session, case: CasePlan, number: int, begun: RoundSoFar | None) -> RoundResult:
    """The result that counts: of the first attempt, unless that failed by the machines' fault."""
    result = begun.attempt if begun else None
    while True:
        if result is None:
            result = await Round(session, on_present_hosts(session, case), number, begun).run()
            if not is_repeated(session, result):
                return result
            with _noted("what an attempt ended with could not be logged", []):
                _log_result(result, session.log_dir)
        try:
            folder = set_aside(session, result)
        except OSError as error:
            LOGGER.error(f"the round is not run again: its folder cannot be moved: {error}")
            return result
        session.display.attempt_failed(result)
        where = await prepare_hosts(session, case, result)
        LOGGER.warning(f"case {result.case}, round {number}: run again {where}; the first: {folder.name}")
        begun = result = None


def _last_attempt(so_far: Resumption | None, results: Sequence[RoundResult]) -> list[RoundResult]:
    """What rounds came to that had failed before the controller died, where they were not run again after all."""
    there = {(each.case, each.round) for each in results}
    attempts = [each.attempt for each in so_far.unfinished.values()] if so_far else []
    return [each for each in attempts if each and (each.case, each.round) not in there]


def _ended_early(session: Session) -> list[str]:
    """A note of what ended the run before its time, if something did."""
    return [f"the run was ended by {session.interrupt.by}"] if session.interrupt.is_set() else []


def _not_run(session: Session, results: Sequence[RoundResult], so_far: Resumption | None) -> list[str]:
    """A note of the rounds that the plan has and the run has no result of, case by case; one where that is all."""
    done = {RoundKey(result.case, result.round) for result in results}
    begun = {key: each for key, each in so_far.unfinished.items() if key not in done} if so_far else {}
    notes = [
        f"{key}: begun, came to the stage {each.stage}, and was not begun anew" for key, each in begun.items()
    ]
    for case in session.plan.cases:
        name = case.settings.name
        keys = [RoundKey(name, number) for number in session.plan.rounds(case)]
        missing = [str(key.number) for key in keys if key not in done and key not in begun]
        if missing:
            notes.append(f"{name}: not begun: round {', '.join(missing)}")
    return notes if done or begun or not notes else ["no round was begun"]


def _log_result(result: RoundResult, log_dir: Path) -> None:
    """A sentence, and what to do; the evidence of a failure is in the log's file and in the failure's own."""
    head = f"case {result.case}, round {result.round}: {result.verdict.value}"
    failure = result.failure
    hooks = result.rules.hooks_line()
    if hooks:
        LOGGER.info(f"case {result.case}, round {result.round}: {hooks}; {result.rules.explanation()}")
    times = ", ".join(f"{stage} {seconds:.0f} s" for stage, seconds in result.times.items() if seconds >= 0.5)
    if failure is None:
        LOGGER.info(f"{head} ({times})" if times else head)
        if result.shortfall:
            LOGGER.warning(f"it did not converge: {result.shortfall}")
            LOGGER.warning(f"    -> {advice(result)}")
        return
    cause = cause_in(failure)
    log = LOGGER.bind(detail=failure.evidence) if failure.evidence else LOGGER
    log = log.bind(more_in=log_dir / failure.file) if failure.file else log
    log.error(f"{head} {failure.headline}{cause and f': {cause}'}")
    if failure.remedy:
        LOGGER.error(f"    -> {failure.remedy}")


async def _leave_hosts(session: Session) -> list[str]:
    """Try again where a round could not clean up after itself, and let go of the hosts; what came of it, as notes.

    Nothing is raised: the rounds that there are make a summary all the same.
    """
    notes: list[str] = []
    unclean = [host for host in session.allocator.standing if host.name in session.unclean]
    with _noted("the hosts could not be cleaned up", notes):
        notes += await unless_broken_off(leave(session, unclean, is_last=True))
    with _noted(NOT_LET_GO, notes):
        await in_time(session.allocator.close(), CLOSE_TIMEOUT_S)
    with _noted("hosts that were taken away could not be cleaned up", notes):
        notes += await unless_broken_off(leave_once_more(session))
    return notes


@contextmanager
def _noted(what: str, notes: list[str]) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        notes.append(f"{what}: {sentence_of(error)}")
        LOGGER.bind(detail=traceback_text(error)).error(notes[-1])


def _summed_up(session: Session, summary: Run) -> Run:
    """`summary`, written; where that, or a round, could not be written, the run counts as neither good nor ended."""
    lost = [each for each in summary.results if without_record(session, each)]
    try:
        if not lost and not session.stranded:  # which may have an earlier record
            write_summary(session.log_dir, summary)
            session.journal.write("run_ended", exit_code=summary.exit_code)
            return summary
        failure = lost[0].failure if lost else None  # of itself, unless it had failed before the judging
        is_why = failure is not None and failure.stage is Stage.JUDGE
        unwritten = FULL if session.stranded else "the result of a round could not be written"
        reason = failure.message if failure and is_why else unwritten
    except Exception as error:  # the exit code must tell of the end all the same
        reason = FULL if is_full(error) else f"the summary could not be written: {error}"
    session.journal.write(UNSAVED, reason=reason, held="".join(session.stranded[-1:]))
    LOGGER.error(f"the run is not written whole: {reason}")
    command = run_command("resume", str(session.log_dir), *session.plan.options)
    within = f" {session.stranded[-1]}" if session.stranded else ""
    shown = f"`df -h {session.log_dir}` shows its disk"
    LOGGER.error(f"    -> once that is mended ({shown}), take the run up{within}: {command}")
    return replace(summary, exit_code=summary.exit_code or ExitCode.NOT_CONVERGED)
