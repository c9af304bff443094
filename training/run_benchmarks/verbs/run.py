"""`run.py` and `run.py run`: run what the two config files say."""

from __future__ import annotations

import argparse

from run_benchmarks.verbs import options

NAME = "run"
HELP = "run the cases (the default)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which plan to run."""
    options.add_plan_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Run the plan on this terminal."""
    from run_benchmarks.foreground import run_in_foreground

    return run_in_foreground(options.plan_of(arguments))
