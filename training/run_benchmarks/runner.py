"""A run: preflight, then every round of every case, then the summary; nothing of it stays on the hosts."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from run_benchmarks.display.base import Display
from run_benchmarks.exit_code import ExitCode
from run_benchmarks.health import check_standing_hosts, refusal_of, report_health
from run_benchmarks.leaving import leave
from run_benchmarks.names import RunId, new_run_id
from run_benchmarks.origin import harness_of
from run_benchmarks.plan.records import Plan
from run_benchmarks.program import signals_restored
from run_benchmarks.results.evidence import cause_in
from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.results.shortfall import advice
from run_benchmarks.results.summary import Run, write_summary
from run_benchmarks.round import Round
from run_benchmarks.run_log import LOGGER
from run_benchmarks.session import (
    Interrupted,
    Session,
    in_time,
    open_session,
    unless_broken_off,
    unless_interrupted,
)
from run_benchmarks.unforeseen import remedy_for, sentence_of, traceback_text

CLOSE_TIMEOUT_S = 60.0


def make_run_folder(log_path: Path) -> tuple[RunId, Path]:
    """A new run and its own result folder; an existing one is never written into."""
    while True:
        run = new_run_id(datetime.now().astimezone())
        folder = log_path / run.name
        try:
            folder.mkdir(parents=True)
            return run, folder
        except FileExistsError:
            time.sleep(0.1)  # another run started in this second: the next one has another name


async def run_plan(
    plan: Plan, run: RunId, log_dir: Path, display: Display, earlier_signals: Sequence[signal.Signals]
) -> Run:
    """Run the whole plan; the summary is written to `log_dir` on every path out.

    Args:
        earlier_signals: those that came since the run had a folder, and more while it gets ready to heed them.
    """
    session = open_session(plan, run, log_dir, display)
    harness = await asyncio.to_thread(harness_of, plan.training_dir, session.tree.digest)
    session = replace(session, harness=harness)
    earlier = {"continue_from": plan.continue_from} if plan.continue_from else {}
    session.journal.write("run_started", run=run.name, uid=run.uid, started=run.started, **earlier)
    results: list[RoundResult] = []
    notes: list[str] = []
    with _interrupt_on_signals(session, earlier_signals):
        try:
            code = await _check_and_run(session, results, notes)
        finally:
            left = await _leave_hosts(session)
        notes += [*_not_begun(session, results), *left]
        end = Run(run.name, run.uid, run.started, code, tuple(results), session.checks, tuple(notes))
        summary = _summed_up(log_dir, plan.secrets.hide_in(end))
        session.journal.write("run_ended", exit_code=summary.exit_code)
        session.journal.close()
    return summary


async def _check_and_run(session: Session, results: list[RoundResult], notes: list[str]) -> int:
    """Preflight of the hosts that are there, then the cases; the rounds that ended stand in `results`.

    notes: gets why the run ended before its last round.
    """
    try:
        await unless_interrupted(session.interrupt, check_standing_hosts(session))
        report_health(session.checks)
        if refusal := refusal_of(session.checks):
            LOGGER.error("Step 2 is left out: nothing is launched before every host is healthy")
            notes.append(refusal)
            return ExitCode.UNHEALTHY
        await _run_cases(session, results)
    except Interrupted:
        notes.append("interrupted before anything was launched")
        LOGGER.warning(f"Step 2 is left out: {notes[-1]}")
    except Exception as error:  # the rounds that there are make a summary all the same
        notes.append(f"the run broke off: {sentence_of(error)}")
        LOGGER.bind(detail=traceback_text(error)).error(notes[-1])
        return _exit_code(session, results) or ExitCode.NOT_CONVERGED
    return _exit_code(session, results)


async def _run_cases(session: Session, results: list[RoundResult]) -> None:
    LOGGER.info("Step 2: run the cases")
    for case in session.plan.cases:
        for number in sorted(session.plan.done.get(case.settings.name, ())):
            LOGGER.info(f"case {case.settings.name}, round {number}: had succeeded; not run again")
        for number in session.plan.rounds(case):
            if session.interrupt.is_set():
                return
            LOGGER.info(f"case {case.settings.name}, round {number} of {case.settings.repeat}: start")
            result = await Round(session, case, number).run()
            results.append(result)
            with _noted("what the round ended with could not be logged", []):
                _log_result(result, session.log_dir)


def _not_begun(session: Session, results: Sequence[RoundResult]) -> list[str]:
    """A note of the rounds that the plan has and the run has not come to, case by case; one where that is all."""
    begun = {(result.case, result.round) for result in results}
    notes = []
    for case in session.plan.cases:
        name = case.settings.name
        missing = [str(number) for number in session.plan.rounds(case) if (name, number) not in begun]
        if missing:
            notes.append(f"{name}: not begun: round {', '.join(missing)}")
    return notes if begun or not notes else ["no round was begun"]


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
        notes += await unless_broken_off(leave(session, unclean))
    with _noted("the hosts could not be let go of", notes):
        await in_time(session.allocator.close(), CLOSE_TIMEOUT_S)
    return notes


@contextmanager
def _noted(what: str, notes: list[str]) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        notes.append(f"{what}: {sentence_of(error)}")
        LOGGER.bind(detail=traceback_text(error)).error(notes[-1])


def _summed_up(log_dir: Path, summary: Run) -> Run:
    """`summary`, written; where that fails it is shown all the same, and the run does not count as converged."""
    try:
        write_summary(log_dir, summary)
        return summary
    except Exception as error:  # the journal and the exit code must tell of the end all the same
        LOGGER.error(f"the summary could not be written: {error}")
        LOGGER.error(f"    -> {remedy_for(error)}")
        return replace(summary, exit_code=summary.exit_code or ExitCode.NOT_CONVERGED)


def _exit_code(session: Session, results: list[RoundResult]) -> int:
    if session.interrupt.is_set():
        return ExitCode.INTERRUPTED
    succeeded = all(result.verdict.is_success for result in results)
    return ExitCode.SUCCESS if results and succeeded else ExitCode.NOT_CONVERGED


@contextmanager
def _interrupt_on_signals(session: Session, earlier: Sequence[signal.Signals]) -> Iterator[None]:
    """Let Ctrl-C, SIGTERM and the loss of the terminal end the run in order; a further one skips no clean-up."""
    loop = asyncio.get_running_loop()

    def ask(number: signal.Signals) -> None:
        if session.interrupt.is_set():
            session.hurried.set()
            LOGGER.warning("still stopping and cleaning up on every host; please wait")
        else:
            session.interrupt.set()
            session.display.interrupted()
            LOGGER.warning(f"interrupted by {number.name}: stopping and cleaning up on every host")

    with signals_restored() as numbers:
        for number in numbers:
            loop.add_signal_handler(number, ask, number)
        for number in earlier:
            ask(number)
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)
