"""`run.py cleanup`: remove what a run left behind on hosts that were out of reach when it ended."""

from __future__ import annotations

import argparse
import asyncio
import sys

from run_benchmarks.exit_code import ExitCode
from run_benchmarks.verbs import options
from utils.errors import FlagPerfError

NAME = "cleanup"
HELP = "remove what a run left on hosts that were out of reach when it ended"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which run, on the hosts of which configuration."""
    options.add_config(parser)
    parser.add_argument("run", metavar="RUN", nargs="?", help="the run's ID; without it the runs are listed")


def run(arguments: argparse.Namespace) -> int:
    """Ask every host; the cases of test_conf.py are not looked at, for they may have changed since."""
    from run_benchmarks.left_behind import list_runs, remove_run
    from run_benchmarks.plan.load import load_settings

    cluster, settings = load_settings(arguments.config, options.TRAINING_DIR)
    if settings.machine.settings:
        print(settings.machine.sentence(), file=sys.stderr)
    listing = arguments.run is None
    work = list_runs(cluster, settings) if listing else remove_run(cluster, settings, arguments.run)
    code = ExitCode.SUCCESS
    for host, names in asyncio.run(work).items():
        if isinstance(names, FlagPerfError):
            print(f"{host}: {names}", file=sys.stderr)
            code = ExitCode.UNHEALTHY
        else:
            nothing = "no run has left anything here" if listing else "nothing of this run is left here"
            print(f"{host}: {', '.join(names) or nothing}")
    return code
