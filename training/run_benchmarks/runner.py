"""A run: preflight, then every round of every case, then the summary; nothing of it stays on the hosts."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from run_benchmarks.exit_code import ExitCode
from run_benchmarks.failures import traceback_text
from run_benchmarks.images import open_image_store
from run_benchmarks.journal import Journal
from run_benchmarks.names import RunId, host_paths, new_run_id
from run_benchmarks.plan.records import Plan
from run_benchmarks.progress import Progress
from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.results.summary import Run, write_summary
from run_benchmarks.results.tables import preflight_text
from run_benchmarks.round import Round
from run_benchmarks.run_log import LOGGER
from run_benchmarks.runtimes import open_runtime
from run_benchmarks.session import Interrupted, Session, remove_units, unless_interrupted
from run_benchmarks.stages.checks import Check
from run_benchmarks.stages.deploy import tree_of
from run_benchmarks.stages.fan_out import on_all
from run_benchmarks.stages.preflight import failed, preflight, warned
from run_benchmarks.transports import open_transport
from run_benchmarks.transports.base import Transport
from run_benchmarks.transports.logged import LoggedTransport
from utils.errors import FlagPerfError


def make_run_folder(log_path: Path) -> tuple[RunId, Path]:
    """A new run and its own result folder; an existing one is never written into."""
    while True:
        run = new_run_id(datetime.now())
        folder = log_path / run.name
        try:
            folder.mkdir(parents=True)
            return run, folder
        except FileExistsError:
            time.sleep(0.1)  # another run started in this second: the next one has another name


async def run_plan(plan: Plan, run: RunId, log_dir: Path, progress: Progress) -> Run:
    """Run the whole plan; the summary is written to `log_dir` on every path out."""
    tree = tree_of(plan)
    session = Session(
        plan=plan,
        run=run,
        log_dir=log_dir,
        paths=host_paths(plan.run, run, tree.digest),
        tree=tree,
        transports={host: LoggedTransport(open_transport(host, plan.cluster)) for host in plan.cluster.hosts},
        runtime=open_runtime(plan.run),
        images=open_image_store(plan.run),
        journal=Journal(log_dir / "journal.jsonl"),
        progress=progress,
        interrupt=asyncio.Event(),
    )
    started = datetime.now().astimezone().isoformat(timespec="seconds")
    results: list[RoundResult] = []
    checks: Mapping[str, list[Check]] = {}
    broke_off = False
    earlier = {"continue_from": plan.continue_from} if plan.continue_from else {}
    session.journal.write("run_started", run=run.name, uid=run.uid, **earlier)
    with _interrupt_on_signals(session.interrupt):
        try:
            checks = await unless_interrupted(
                session.interrupt, preflight(plan, session.runtime, session.transports)
            )
            if _report_health(checks):
                await _run_cases(session, results)
        except Interrupted:
            LOGGER.warning("interrupted before anything was launched")
        except Exception as error:  # the rounds that there are make a summary all the same
            LOGGER.error(f"the run broke off\n{traceback_text(error)}")
            broke_off = True
        finally:
            await _leave_hosts(session, bool(failed(checks)))
    code = _exit_code(session, checks, results) or (ExitCode.NOT_CONVERGED if broke_off else 0)
    summary = _summed_up(log_dir, Run(run.name, run.uid, started, code, tuple(results), checks))
    session.journal.write("run_ended", exit_code=summary.exit_code)
    session.journal.close()
    progress.close()
    return summary


def _summed_up(log_dir: Path, summary: Run) -> Run:
    """`summary`, written; where that fails it is shown all the same, and the run does not count as converged."""
    try:
        write_summary(log_dir, summary)
        return summary
    except OSError as error:
        LOGGER.error(f"the summary could not be written: {error}")
        return replace(summary, exit_code=summary.exit_code or ExitCode.NOT_CONVERGED)


async def _run_cases(session: Session, results: list[RoundResult]) -> None:
    LOGGER.info("Step 2: run the cases")
    for case in session.plan.cases:
        for number in sorted(session.plan.done.get(case.settings.name, ())):
            LOGGER.info(f"case {case.settings.name}, round {number}: had converged; not run again")
        for number in session.plan.rounds(case):
            if session.interrupt.is_set():
                return
            LOGGER.info(f"case {case.settings.name}, round {number} of {case.settings.repeat}: start")
            result = await Round(session, case, number).run()
            results.append(result)
            _log_result(result)


def _log_result(result: RoundResult) -> None:
    head = f"case {result.case}, round {result.round}: {result.verdict.value}"
    failure = result.failure
    if failure is None:
        LOGGER.info(head)
        return
    where = f" on {failure.host}" if failure.host else ""
    LOGGER.error(
        f"{head} at the stage {failure.stage.value}{where} ({failure.failure_class.value}): {failure.message}"
    )
    for line in failure.evidence.splitlines():
        LOGGER.error(f"    {line}")
    if failure.remedy:
        LOGGER.error(f"    -> {failure.remedy}")


def _report_health(checks: Mapping[str, list[Check]]) -> bool:
    for line in preflight_text(checks).splitlines():
        LOGGER.info(line)
    for host, check in warned(checks):
        LOGGER.warning(f"{host}: {check.name}: {check.detail} -> {check.remedy}")
    for host, check in failed(checks):
        LOGGER.error(f"{host}: {check.name}: {check.detail} -> {check.remedy}")
    return not failed(checks)


async def _leave_hosts(session: Session, unhealthy: bool) -> None:
    """Remove the run's units and its folder from every host, and let go of the hosts."""

    async def remove_folder(host: str) -> None:
        # Node folders that were collected are spares; one that was not is all there is, and stays.
        script = (
            'for d in "$@"; do rm -rf "$d"; done; find "$0" -depth -type d -empty -delete 2>/dev/null || true'
        )
        collected = [
            f"{session.paths.logs}/{folder.relative_to(session.log_dir)}"
            for folder in session.log_dir.glob("*/round*/*_noderank*")
            if folder.name.rpartition("_noderank")[0] == host
        ]
        await session.transports[host].run(["sh", "-c", script, session.paths.run, *collected], timeout=60)

    if not unhealthy:
        hosts = list(session.transports)
        left = await remove_units(session, hosts)
        reached = [host for host in hosts if host not in left]
        for host, result in (await on_all(reached, remove_folder)).items():
            if isinstance(result, FlagPerfError):
                LOGGER.warning(f"{host}: {session.paths.run} could not be removed: {result.message}")
    for transport in session.transports.values():
        await _close(transport)


async def _close(transport: Transport) -> None:
    try:
        await transport.close()
    except FlagPerfError as error:
        LOGGER.debug(f"{transport.host}: {error}")


def _exit_code(session: Session, checks: Mapping[str, list[Check]], results: list[RoundResult]) -> int:
    if session.interrupt.is_set():
        return ExitCode.INTERRUPTED
    if failed(checks):
        return ExitCode.UNHEALTHY
    succeeded = all(result.verdict.is_success for result in results)
    return ExitCode.SUCCESS if results and succeeded else ExitCode.NOT_CONVERGED


@contextmanager
def _interrupt_on_signals(interrupt: asyncio.Event) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end the run in order; pressing again does not skip the clean-up."""
    loop = asyncio.get_running_loop()

    def ask() -> None:
        if interrupt.is_set():
            LOGGER.warning("still stopping and cleaning up on every host; please wait")
        else:
            LOGGER.warning("interrupted: stopping and cleaning up on every host")
            interrupt.set()

    handlers: list[tuple[signal.Signals, Callable[[], None]]] = [(signal.SIGINT, ask), (signal.SIGTERM, ask)]
    for number, handler in handlers:
        loop.add_signal_handler(number, handler)
    try:
        yield
    finally:
        for number, _ in handlers:
            loop.remove_signal_handler(number)
