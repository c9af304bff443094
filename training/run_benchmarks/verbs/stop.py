"""`run.py stop`: end a run in order, from any machine that sees its result folder."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING

from run_benchmarks.exit_code import ExitCode
from run_benchmarks.output import complain, put
from run_benchmarks.verbs import options
from run_benchmarks.verbs.resume import take_up
from utils.errors import FlagPerfError

if TYPE_CHECKING:
    from run_benchmarks.plan.secrets import SecretsHere

NAME = "stop"
HELP = "end a run in order: its tasks are stopped, their logs collected, its hosts left clean"
LOOK_EVERY_S = 0.5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which run; where its controller has died, by which files."""
    options.add_config(parser)
    options.add_log_path(parser)
    options.add_open_run(parser)


def run(arguments: argparse.Namespace) -> int:
    """Ask the run's controller and wait until it has ended; where that has died, end the run in its place."""
    from run_benchmarks.interruption import asker_here, request_stop
    from run_benchmarks.journal import is_held
    from run_benchmarks.names import JOURNAL
    from run_benchmarks.results.controller import lost_controller
    from run_benchmarks.results.find import find_open_run
    from run_benchmarks.results.folder import open_folder
    from run_benchmarks.results.load import load_run

    folder = find_open_run(arguments.run, options.log_path_of(arguments)).resolve()
    secrets = options.secrets_of(arguments)
    code = load_run(folder, secrets).exit_code
    if code is not None:
        put(f"{folder}: the run has ended already, with exit code {code}")
        return ExitCode.SUCCESS
    held = is_held(folder / JOURNAL)
    if held is None:
        remedy = "end it where it was started: Ctrl-C, or `kill PID`"
        raise FlagPerfError("whether the run goes on cannot be told", where=str(folder), remedy=remedy)
    if not held:
        complain(f"{folder}: {lost_controller(open_folder(folder)).fate}; the run is ended in its place")
        code = take_up(folder, arguments, stopped_by=asker_here())
        return _code_of(folder, arguments) if code == ExitCode.INTERRUPTED else code
    request_stop(folder)
    put(f"{folder}: asked to stop; waiting until it has ended (Ctrl-C ends the waiting alone)")
    _wait(folder, secrets)
    return _code_of(folder, arguments)


def _wait(folder: Path, secrets: SecretsHere) -> None:
    from run_benchmarks.journal import is_held
    from run_benchmarks.names import JOURNAL
    from run_benchmarks.results.controller import DIED, lost_controller
    from run_benchmarks.results.folder import open_folder
    from run_benchmarks.results.load import load_run
    from run_benchmarks.results.summary import outcome_text

    while is_held(folder / JOURNAL):
        time.sleep(LOOK_EVERY_S)
    ended = load_run(folder, secrets)
    if ended.exit_code is None and lost_controller(open_folder(folder)).fate == DIED:
        remedy = "ask once more: it is then ended in the place of its controller"
        raise FlagPerfError(
            "its controller died before it had ended the run", where=str(folder), remedy=remedy
        )
    if ended.exit_code is not None:
        put(f"{folder}: exit code {outcome_text(ended)}")


def _code_of(folder: Path, arguments: argparse.Namespace) -> int:
    """That of the stop: the run may still hold hosts, if their scheduler did not let them go, or logs had no room."""
    from run_benchmarks.commands import place_options, run_command
    from run_benchmarks.results.controller import NOT_LET_GO
    from run_benchmarks.results.load import load_run

    ended = load_run(folder, options.secrets_of(arguments))
    if ended.exit_code is None:
        return _code_of_unsaved(folder, arguments, ended.uid)
    held = [note for note in ended.notes if note.startswith(NOT_LET_GO)]
    if not held:
        return ExitCode.SUCCESS
    places = place_options(arguments.config, arguments.log_path)
    remedy = f"once the scheduler answers: {run_command('cleanup', ended.uid, *places)}"
    complain(f"{folder}: {held[0]}\n    -> {remedy}")
    return ExitCode.UNHEALTHY


def _code_of_unsaved(folder: Path, arguments: argparse.Namespace, uid: str) -> int:
    """Where not all was written: that is why the run has not ended, and pods with logs that are nowhere else stay."""
    from run_benchmarks.commands import place_options, run_command
    from run_benchmarks.results.controller import lost_controller
    from run_benchmarks.results.folder import open_folder

    lost, places = lost_controller(open_folder(folder)), place_options(arguments.config, arguments.log_path)
    stays = "; its pods stay, for logs that are nowhere else lie there" if lost.held else ""
    remedy = f"{'free space' if lost.held else 'mend that'}, and take the run up"
    remedy = f"{' '.join((remedy, lost.held)).strip()}: {run_command('resume', str(folder), *places)}"
    complain(f"{folder}: the run has not ended: {lost.fate}{stays}\n    -> {remedy}")
    if not lost.held:
        return ExitCode.NOT_CONVERGED
    complain(f"    -> to end the pods, with those logs: {run_command('cleanup', uid, *places)}")
    return ExitCode.UNHEALTHY
