"""`run.py resume`: go on with a run whose controller has died."""

from __future__ import annotations

import argparse
from pathlib import Path

from run_benchmarks.commands import place_options
from run_benchmarks.verbs import options

NAME = "resume"
HELP = (
    "go on with a run whose controller has died: with what still runs on the hosts, and without what is done"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which run, and by which files."""
    options.add_config(parser)
    options.add_log_path(parser)
    options.add_open_run(parser)


def run(arguments: argparse.Namespace) -> int:
    """Take the run up on this terminal."""
    from run_benchmarks.results.find import find_open_run

    return take_up(find_open_run(arguments.run, options.log_path_of(arguments)), arguments)


def take_up(folder: Path, arguments: argparse.Namespace, *, stopped_by: str = "") -> int:
    """Go on with the run in a folder; the exit code.

    Args:
        stopped_by: who wants it to be ended in order: its tasks are stopped, their logs collected.

    Raises:
        FlagPerfError: it goes on, or has ended, is another user's, or the files do not lead to its plan any more.
    """
    from run_benchmarks.foreground import resume_in_foreground
    from run_benchmarks.interruption import drop_request, request_in
    from run_benchmarks.journal import Journal
    from run_benchmarks.names import JOURNAL
    from run_benchmarks.own_folder import check_own
    from run_benchmarks.resumable import check_open_end, check_unchanged, plan_again
    from run_benchmarks.resumption import read_resumption

    check_open_end(folder, place_options(arguments.config, arguments.log_path))
    check_own(folder)
    plan = plan_again(folder, arguments.config, options.TRAINING_DIR, arguments.log_path)
    request = request_in(folder)
    so_far = read_resumption(
        folder, Journal(folder / JOURNAL, plan.secrets, is_taken_over=True), plan.secrets
    )
    drop_request(folder, request)
    check_unchanged(folder, plan, so_far)
    return resume_in_foreground(plan, folder.resolve(), so_far, stopped_by)
