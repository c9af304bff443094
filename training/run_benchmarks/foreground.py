"""A run in the foreground of a terminal: its folder and log are made, it is shown, and its results are printed."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from run_benchmarks import BANNER
from run_benchmarks.commands import run_command
from run_benchmarks.display.base import Display
from run_benchmarks.display.guarded import Guarded
from run_benchmarks.display.terminal import open_display
from run_benchmarks.exit_code import ExitCode
from run_benchmarks.host_log import flush
from run_benchmarks.hosts import check_hosts
from run_benchmarks.hosts.base import NotTakenUpError, WaitEndedError
from run_benchmarks.metrics.export import exported
from run_benchmarks.names import RUN_LOG, RunId
from run_benchmarks.output import NotPrintedError, complain, output_width, put
from run_benchmarks.own_folder import make_run_folder
from run_benchmarks.plan.as_dict import plan_as_dict
from run_benchmarks.plan.records import Plan
from run_benchmarks.plan_notes import notes_of
from run_benchmarks.program import discard_output, signals_kept
from run_benchmarks.results.controller import NOT_TAKEN_UP
from run_benchmarks.results.round_result import write_json
from run_benchmarks.results.summary import Run, outcome_text
from run_benchmarks.results.tables import results_text
from run_benchmarks.resumption import Resumption
from run_benchmarks.run_log import LOGGER, hidden_in_log, log_to_file
from run_benchmarks.runner import run_plan
from run_benchmarks.session import CANCEL_GRACE_S
from run_benchmarks.unforeseen import sentence_of, traceback_text
from utils.errors import FlagPerfError
from utils.numbers import counted
from utils.writing import PRIVATE


def run_in_foreground(plan: Plan, began: Callable[[Path], None] = lambda folder: None) -> int:
    """Run the plan; the exit code.

    Args:
        began: gets the run's result folder when there is one.

    Raises:
        FlagPerfError: nothing was launched: there is no room for its results, METRICS_PORT is not free, or the hosts
            cannot be asked for.
    """

    def open_new(opened: ExitStack) -> tuple[RunId, Path]:
        run, folder = _open_run(plan, opened)
        began(folder)
        return run, folder

    if plan.cluster.scheduler:
        asyncio.run(check_hosts(plan))
    with exported(plan.run) as displays:
        return _shown(plan, open_new, displays)


def resume_in_foreground(plan: Plan, folder: Path, so_far: Resumption, stopped_by: str = "") -> int:
    """Go on with the run in `folder`, whose plan is `plan`; the exit code.

    Args:
        stopped_by: who wants it to be ended in order, and not gone on with.

    Raises:
        KeyboardInterrupt: a signal ended the waiting for hosts that a round had; the run was left as it is.
    """

    def open_again(opened: ExitStack) -> tuple[RunId, Path]:
        opened.enter_context(log_to_file(folder / RUN_LOG, plan.run.log_level))
        LOGGER.info(BANNER)
        LOGGER.info(f"{so_far.note}; logs and results: {folder}")
        return so_far.run, folder

    try:
        with exported(plan.run, is_needed=False) as displays:
            return _shown(plan, open_again, displays, so_far, stopped_by)
    except WaitEndedError as error:
        complain(error)
        raise KeyboardInterrupt(error.by) from error


def _shown(
    plan: Plan,
    open_run: Callable[[ExitStack], tuple[RunId, Path]],
    further: Sequence[Display],
    so_far: Resumption | None = None,
    stopped_by: str = "",
) -> int:
    display = Guarded(open_display(plan.run.log_level), *further)
    try:
        with hidden_in_log(plan.secrets.hide):
            return _run(plan, display, open_run, so_far, stopped_by)
    finally:
        with _terminal_may_be_gone():
            display.close()


def _run(
    plan: Plan,
    display: Display,
    open_run: Callable[[ExitStack], tuple[RunId, Path]],
    so_far: Resumption | None,
    stopped_by: str,
) -> int:
    with ExitStack() as opened:
        with signals_kept() as signals:  # once there is a folder, a signal's end of the run is told there
            run, folder = open_run(opened)
            try:
                work = run_plan(plan, run, folder, display, signals, so_far, stopped_by)
                summary = _to_its_end(work)
            except NotTakenUpError:  # its hosts, and what runs there, were left as they are
                _let_go(so_far)
                raise
            except FlagPerfError as error:  # to the caller it would mean that nothing was launched
                LOGGER.bind(detail=traceback_text(error)).error(f"the run broke off: {sentence_of(error)}")
                return ExitCode.NOT_CONVERGED
        with _terminal_may_be_gone():
            display.close()
        _finish(summary, folder)
        if (folder / "summary.json").is_file():  # else the run is to be taken up once there is room for it
            _report(summary, folder, plan.secrets.hide)
        assert summary.exit_code is not None  # noqa: S101 - it has ended
        return summary.exit_code


def _let_go(so_far: Resumption | None) -> None:
    """Say in the journal that nobody has watched the run since its last controller's last sign, and let go of it."""
    if so_far:
        so_far.journal.write(NOT_TAKEN_UP, last_sign=so_far.controller.last_sign)
        so_far.journal.close()


def _to_its_end(work: Coroutine[Any, Any, Run]) -> Run:
    """`asyncio.run`, but that it waits for nothing that was left behind because it does not heed its end."""
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(work)
    finally:
        loop.run_until_complete(_end_all())
        flush()
        loop.set_exception_handler(lambda _, about: LOGGER.debug(f"left behind: {about.get('message')}"))
        loop.close()


async def _end_all() -> None:
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    if left:
        await asyncio.wait(left, timeout=CANCEL_GRACE_S)


@contextmanager
def _terminal_may_be_gone() -> Iterator[None]:
    """Show what can be shown: a run whose terminal has gone (EIO) is worth more than its last lines there."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        LOGGER.debug(f"the terminal is gone: {error}")


def _open_run(plan: Plan, opened: ExitStack) -> tuple[RunId, Path]:
    """The run's result folder, with its log and its plan in it: the last step before a host is touched."""
    try:
        run, folder = make_run_folder(plan.run.log_path, plan.training_dir)
        opened.enter_context(log_to_file(folder / RUN_LOG, plan.run.log_level))
        LOGGER.info(BANNER)
        LOGGER.info(f"run {run.name}; logs and results: {folder}")
        if plan.run.machine.settings:
            LOGGER.info(plan.run.machine.sentence())
        if plan.continue_from:
            LOGGER.info(f"the rounds go on from the checkpoints of {plan.continue_from}")
        LOGGER.info("Step 1: check the configuration and the hosts")
        listed = plan.cluster.hosts or not plan.cluster.slurm
        hosts = counted(len(plan.cluster.hosts), "host") if listed else "hosts that Slurm grants"
        cases = counted(len(plan.cases), "case")
        LOGGER.info(f"{cases}, {hosts}: the configuration is valid")
        for note in notes_of(plan):
            LOGGER.warning(note)
        write_json(folder / "plan.json", plan_as_dict(plan), PRIVATE)
    except OSError as error:
        raise FlagPerfError(
            f"the run's results cannot be written, nothing was launched: {error}",
            where=str(plan.run.log_path),
            remedy="name a folder that can be written: FLAGPERF_LOG_PATH in test_conf.py, or --log-path",
        ) from error
    return run, folder


def _finish(summary: Run, folder: Path) -> None:
    LOGGER.info("Step 3: results")
    if (folder / "summary.json").is_file():
        LOGGER.info(f"summary: {folder / 'summary.md'}")
    LOGGER.info(f"exit code {outcome_text(summary)}")
    table = results_text(summary.results, output_width()) if summary.results else ""
    try:
        put("\n".join(filter(None, (table, f"results and logs: {folder}"))))
    except (BrokenPipeError, NotPrintedError) as error:  # the exit code tells of the run all the same
        discard_output()
        reason = error.message if isinstance(error, NotPrintedError) else "nobody reads standard output"
        LOGGER.error(f"the results could not be printed: {reason}; they are in {folder}")


def _report(summary: Run, folder: Path, hide: Callable[[str], str]) -> None:
    """Write the run as a page, once its results are printed: nobody waits for it, and a fault in it loses nothing."""
    from run_benchmarks.report.report import REPORT, try_report

    try:
        path = try_report(folder, summary, hide)
    except KeyboardInterrupt:  # the run has ended: its exit code stands
        path = None
        LOGGER.warning("interrupted while the report was made")
    if path is None:
        make = run_command("report", str(folder))
        LOGGER.error(f"there is no {folder / REPORT}; summary.json has all figures; to make it: {make}")
        return
    with suppress(OSError, NotPrintedError):  # it is there, also where nobody reads of it
        put(f"report: {path}")
