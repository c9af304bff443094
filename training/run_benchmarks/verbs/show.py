"""`run.py show`: what a run ended with, from its result folder alone; its configuration need not be there."""

from __future__ import annotations

import argparse
import json

from run_benchmarks.exit_code import ExitCode
from run_benchmarks.output import output_width, put
from run_benchmarks.verbs import options

NAME = "show"
HELP = "show a run: its tables, what went wrong and what the figures mean, from its result folder alone"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which run, and how."""
    options.add_config(parser)
    options.add_log_path(parser)
    options.add_run(parser)
    parser.add_argument(
        "--rescore",
        action="store_true",
        help="judge it again by today's formulas, from its raw logs, and say what differs; nothing is written",
    )
    parser.add_argument("--json", action="store_true", help="the same as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Print it."""
    from run_benchmarks.results.find import find_run
    from run_benchmarks.results.load import load_run
    from run_benchmarks.results.rescore import rescore
    from run_benchmarks.results.text import run_text
    from utils.text_files import one_line

    folder = find_run(arguments.run, options.log_path_of(arguments))
    secrets = options.secrets_of(arguments)
    if arguments.rescore:
        rounds, notes = rescore(folder, secrets), load_run(folder, secrets).notes
        lines = [line for each in rounds for line in each.lines()]
        text = "\n".join(
            map(one_line, [str(folder), *(f"- {note}" for note in notes), *lines, "nothing was written"])
        )
        content: object = {
            "folder": str(folder),
            "notes": notes,
            "rounds": [each.as_dict() for each in rounds],
        }
    else:
        loaded = load_run(folder, secrets)
        text, content = f"{run_text(loaded, output_width())}\n\nresults and logs: {folder}", loaded.as_dict()
    put(json.dumps(content, indent=2) if arguments.json else text)
    return ExitCode.SUCCESS
