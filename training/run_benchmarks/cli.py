"""The command line of `run.py`: without a verb it runs what the two config files say."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from run_benchmarks.cleanup import Removed, clean_up_run, list_runs
from run_benchmarks.display import LiveTable, PlainLines
from run_benchmarks.failures import traceback_text
from run_benchmarks.names import RunId
from run_benchmarks.plan.as_dict import plan_as_dict
from run_benchmarks.plan.load import load_plan
from run_benchmarks.plan.problems import NoValidCaseError
from run_benchmarks.plan.records import Plan
from run_benchmarks.plan.restart import OPTION
from run_benchmarks.plan_view import PlanView
from run_benchmarks.progress import Progress
from run_benchmarks.results.round_result import write_json
from run_benchmarks.results.summary import RunSummary
from run_benchmarks.results.tables import results_text
from run_benchmarks.run_log import LOGGER, start_file_log, start_terminal_log, stop_file_log
from run_benchmarks.runner import ExitCode, make_run_folder, run_plan
from utils.errors import FlagPerfError, ProblemsError

TRAINING_DIR = Path(__file__).resolve().parent.parent
BANNER = "FlagPerf: how fast, how efficiently and how reliably chips train models to a stated quality"
EPILOG = """\
exit codes:
  0  every round of every case ended         3  a host is not healthy
     CONVERGED or MEASURED                   4  no case is valid
  1  a round did not, or the run broke off 130  interrupted
  2  the configuration is wrong: nothing was launched
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Do what the command line says.

    Returns:
        The exit code (see EPILOG).
    """
    arguments = _parser().parse_args(argv)
    try:
        plan = load_plan(
            arguments.config,
            TRAINING_DIR,
            only_cases=arguments.cases,
            log_path=arguments.log_path,
            continue_from=arguments.continue_from,
        )
        return {"run": _run, "plan": _plan, "cleanup": _cleanup}[arguments.verb](plan, arguments)
    except ProblemsError as error:
        for problem in error.problems:
            print(problem, file=sys.stderr)
        count = len(error.problems)
        print(f"{count} problem{'s' if count > 1 else ''}; nothing was launched", file=sys.stderr)
        return ExitCode.NO_VALID_CASE if isinstance(error, NoValidCaseError) else ExitCode.BAD_CONFIG
    except FlagPerfError as error:
        print(error, file=sys.stderr)
        return ExitCode.BAD_CONFIG


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="run.py",
        description=f"{BANNER}.\nEdit config/cluster_conf.py and config/test_conf.py, then run this without a verb.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(verb="run")
    _add_options(parser, top=True)
    verbs = parser.add_subparsers(title="verbs", metavar="")
    for verb, text in (
        ("run", "run the cases (the default)"),
        ("plan", "print what would be done, with every command a host would get; touches nothing"),
        ("cleanup", "remove what a run left on hosts that were out of reach when it ended"),
    ):
        sub = verbs.add_parser(verb, help=text, description=text)
        sub.set_defaults(verb=verb)
        _add_options(sub, top=False)
        if verb == "cleanup":
            sub.add_argument("run", nargs="?", help="the run's ID; without it the runs are listed")
        if verb == "plan":
            sub.add_argument("--json", action="store_true", help="the resolved plan as JSON")
    return parser


def _add_options(parser: argparse.ArgumentParser, *, top: bool) -> None:
    # The same options before and after the verb; a verb's unset option must not undo the one before it.
    absent = None if top else argparse.SUPPRESS
    parser.add_argument(
        "--config",
        type=Path,
        metavar="DIR",
        default=TRAINING_DIR / "run_benchmarks" / "config" if top else argparse.SUPPRESS,
        help="the folder with cluster_conf.py and test_conf.py (default: run_benchmarks/config)",
    )
    parser.add_argument(
        "--cases", nargs="+", metavar="CASE", default=absent, help="only these cases of test_conf.py"
    )
    parser.add_argument(
        "--log-path", type=Path, metavar="DIR", default=absent, help="put the result folder here"
    )
    parser.add_argument(
        OPTION,
        metavar="RUN",
        default=absent,
        help="let each round go on from the newest checkpoint of the same round of this earlier run",
    )


def _plan(plan: Plan, arguments: argparse.Namespace) -> int:
    if arguments.json:
        print(json.dumps(plan_as_dict(plan), indent=2))
    else:
        for line in PlanView(plan).lines():
            print(line)
    return ExitCode.CONVERGED


def _cleanup(plan: Plan, arguments: argparse.Namespace) -> int:
    listing = arguments.run is None
    done: Removed = asyncio.run(list_runs(plan) if listing else clean_up_run(plan, arguments.run))
    code = ExitCode.CONVERGED
    for host, result in done.items():
        if isinstance(result, FlagPerfError):
            print(f"{host}: {result}", file=sys.stderr)
            code = ExitCode.UNHEALTHY
        else:
            nothing = "no run has left anything here" if listing else "nothing of this run is left here"
            print(f"{host}: {', '.join(result) or nothing}")
    return code


def _run(plan: Plan, arguments: argparse.Namespace) -> int:
    console = Console(stderr=True)
    progress: Progress
    if console.is_terminal:
        table = LiveTable(console)
        start_terminal_log(plan.run.log_level, table.handler)
        progress = table
    else:
        start_terminal_log(plan.run.log_level)
        progress = PlainLines()
    try:
        run, folder, log = _open_run(plan)
        try:
            summary = asyncio.run(run_plan(plan, run, folder, progress))
            _finish(summary, folder)
        except FlagPerfError as error:  # to the caller it would mean that nothing was launched
            LOGGER.error(f"the run broke off\n{traceback_text(error)}")
            return ExitCode.NOT_CONVERGED
        finally:
            stop_file_log(log)
    finally:
        progress.close()
    return summary.exit_code


def _open_run(plan: Plan) -> tuple[RunId, Path, logging.Handler]:
    """The run's result folder, with its log and its plan in it: the last step before a host is touched."""
    try:
        run, folder = make_run_folder(plan.run.log_path)
        log = start_file_log(folder / "flagperf_run.log")
        LOGGER.info(BANNER)
        LOGGER.info(f"run {run.name}; logs and results: {folder}")
        if plan.continue_from:
            LOGGER.info(f"the rounds go on from the checkpoints of {plan.continue_from}")
        LOGGER.info("Step 1: check the configuration and the hosts")
        LOGGER.info(
            f"{len(plan.cases)} case(s), {len(plan.cluster.hosts)} host(s): the configuration is valid"
        )
        write_json(folder / "plan.json", plan_as_dict(plan))
    except OSError as error:
        raise FlagPerfError(
            f"the run's results cannot be written, nothing was launched: {error}",
            where=str(plan.run.log_path),
            remedy="name a folder that can be written: FLAGPERF_LOG_PATH in test_conf.py, or --log-path",
        ) from error
    return run, folder, log


def _finish(summary: RunSummary, folder: Path) -> None:
    LOGGER.info("Step 3: results and logs are collected")
    if (folder / "summary.md").is_file():  # a full disk has no room for it
        LOGGER.info(f"summary: {folder / 'summary.md'}")
    LOGGER.info(f"exit code {summary.exit_code}")
    if summary.results:
        shown = Console()
        print(results_text(summary.results, shown.width if shown.is_terminal else None))
    print(f"results and logs: {folder}")
