"""`run.py status`: where a run is, from its result folder alone, on any machine that sees it."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from run_benchmarks.commands import place_options, run_command
from run_benchmarks.exit_code import ExitCode
from run_benchmarks.output import output_width, put
from run_benchmarks.verbs import options
from utils.errors import FlagPerfError

if TYPE_CHECKING:
    from run_benchmarks.plan.secrets import SecretsHere
    from run_benchmarks.results.folder import RunFolder

NAME = "status"
HELP = "show where a run is: its rounds, their stages, and the end of its log"
LOG_LINES = 5
LOOK_EVERY_S = 1.0
MOST_AT_ONCE = 2**20  # bytes of the log
HEADINGS = ("case", "round", "state", "for")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which run, and for how long."""
    options.add_config(parser)
    options.add_log_path(parser)
    options.add_open_run(parser)
    parser.add_argument(
        "-f", "--follow", action="store_true", help="print its log as it grows, until it has ended"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print it."""
    from run_benchmarks.history.live import progress
    from run_benchmarks.results.find import find_open_run
    from run_benchmarks.results.table import Table

    folder = find_open_run(arguments.run, options.log_path_of(arguments))
    seen = progress(folder)
    rows = tuple((*parts, duration or "-") for *parts, duration in seen["rounds"])
    places = place_options(arguments.config, arguments.log_path)
    put(_headline(folder, places, options.secrets_of(arguments)))
    put(Table(HEADINGS, rows, fixed=2).text(output_width()))
    put("\n".join([*filter(None, [seen["search"]]), *seen["log"][-LOG_LINES:]]))
    if arguments.follow:
        _follow(folder)
    return ExitCode.SUCCESS


def _headline(folder: Path, places: Sequence[str], secrets: SecretsHere) -> str:
    """Whether the run goes on, and what to do where it does not.

    places: what leads a command to the caller's files; a run's own are named where nobody else can have written them.
    """
    from run_benchmarks.history.live import since_text
    from run_benchmarks.journal import is_held
    from run_benchmarks.names import JOURNAL
    from run_benchmarks.results.controller import lost_controller
    from run_benchmarks.results.folder import open_folder
    from run_benchmarks.results.load import run_in
    from run_benchmarks.results.summary import outcome_text

    opened = open_folder(folder)
    loaded = run_in(opened, secrets)
    head = f"{folder}: started {loaded.started}"
    if loaded.exit_code is not None:
        return f"{head}, exit code {outcome_text(loaded)}"
    held = is_held(folder / JOURNAL)
    if held:
        return f"{head}, goes on"
    if held is None:
        return f"{head}; whether it goes on cannot be told here"
    gone, own = lost_controller(opened), _places_of(opened) or places
    resume, stop = (run_command(verb, str(folder.resolve()), *own) for verb in ("resume", "stop"))
    lines = (
        f"{head}; {gone.fate}; its last sign was {since_text(gone.last_sign)} ago",
        f"to go on: {resume}",
        f"to end it: {stop}",
    )
    return "\n    -> ".join(lines)


def _places_of(folder: RunFolder) -> tuple[str, ...]:
    """The options that lead to a run's own files; none where another user may have written them."""
    from run_benchmarks.own_folder import check_own
    from run_benchmarks.results.folder import as_list

    try:
        check_own(folder.path)
    except FlagPerfError:
        return ()
    return tuple(map(str, as_list(folder.plan.get("options"))))


def _follow(folder: Path) -> None:
    """Print what is added to the run's log, as long as its controller lives."""
    from run_benchmarks.journal import is_held
    from run_benchmarks.names import JOURNAL, RUN_LOG
    from utils.text_files import opened

    with opened(folder / RUN_LOG) as log:
        log.seek(0, 2)
        goes_on = True
        while goes_on:
            goes_on = bool(
                is_held(folder / JOURNAL)
            )  # asked first: what was written before the end is printed
            while text := log.read(MOST_AT_ONCE).decode("utf-8", "replace").rstrip("\n"):
                put(text)
            if goes_on:
                time.sleep(LOOK_EVERY_S)
