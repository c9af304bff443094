"""`run.py report`: a run as one HTML file that opens without a network, from its result folder alone."""

from __future__ import annotations

import argparse
from contextlib import ExitStack

from run_benchmarks.exit_code import ExitCode
from run_benchmarks.output import put
from run_benchmarks.verbs import options

NAME = "report"
HELP = "write a run as one HTML file, with its curves, power and hosts, from its result folder alone"
ENDINGS = (".html", ".htm")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which run, and where to."""
    options.add_config(parser)
    options.add_log_path(parser)
    options.add_run(parser)
    parser.add_argument(
        "--output",
        metavar="FILE",
        type=options.path_of,
        help="the file to write, a new one, .html (default: report.html in the run's folder, anew each time)",
    )
    parser.add_argument(
        "--csv",
        metavar="DIR",
        type=options.path_of,
        help="a new folder for figures.csv, and for every point of each round's curves",
    )


def run(arguments: argparse.Namespace) -> int:
    """Write it."""
    from run_benchmarks.exports.destination import new_file, new_folder
    from run_benchmarks.own_folder import check_writable
    from run_benchmarks.report.csv_files import write_csv
    from run_benchmarks.report.report import REPORT, write_report
    from run_benchmarks.results.find import find_run
    from run_benchmarks.results.folder import open_folder
    from run_benchmarks.results.load import run_in
    from utils.errors import FlagPerfError
    from utils.text_files import one_line

    folder = open_folder(find_run(arguments.run, options.log_path_of(arguments)))
    if not arguments.output:
        check_writable(folder.path, "name another place with --output")
    secrets = options.secrets_of(arguments)
    loaded = run_in(folder, secrets)
    hide = secrets().hide
    target, tables = arguments.output or folder.path / REPORT, []
    try:
        with ExitStack() as places:
            page = places.enter_context(new_file(target, ENDINGS)) if arguments.output else target
            if arguments.csv:
                made = places.enter_context(new_folder(arguments.csv))
                tables = [arguments.csv / path.name for path in write_csv(made, folder, loaded, hide)]
            write_report(page, folder, loaded, hide)
    except OSError as error:
        raise FlagPerfError(
            f"cannot be written: {error.strerror}",
            where=str(error.filename or target),
            remedy="name another place with --output or --csv",
        ) from error
    put("\n".join(one_line(str(path)) for path in (target, *tables)))
    return ExitCode.SUCCESS
