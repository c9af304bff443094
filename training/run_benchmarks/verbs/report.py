"""`run.py report`: a run as one HTML file that opens without a network, from its result folder alone."""

from __future__ import annotations

import argparse
from pathlib import Path

from run_benchmarks.exit_code import ExitCode
from run_benchmarks.output import put
from run_benchmarks.verbs import options

NAME = "report"
HELP = "write a run as one HTML file, with its curves, power and hosts, from its result folder alone"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which run, and where to."""
    options.add_config(parser)
    options.add_log_path(parser)
    parser.add_argument(
        "run",
        metavar="RUN",
        type=options.name_of,
        nargs="?",
        help="its result folder, its name, or `latest` (the default): the newest one",
    )
    parser.add_argument(
        "--output",
        metavar="FILE",
        type=options.path_of,
        help="the file to write (default: report.html in the run's folder)",
    )
    parser.add_argument(
        "--csv",
        metavar="DIR",
        type=options.path_of,
        help="a folder for figures.csv, and for every point of each round's curves",
    )


def run(arguments: argparse.Namespace) -> int:
    """Write it."""
