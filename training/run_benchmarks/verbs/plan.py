"""`run.py plan`: what a run would do, with every command that a host would get."""

from __future__ import annotations

import argparse
import json

from run_benchmarks.exit_code import ExitCode
from run_benchmarks.output import put
from run_benchmarks.verbs import options

NAME = "plan"
HELP = "print what would be done, with every command a host would get; touches nothing"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which plan to show, and how."""
    options.add_plan_options(parser)
    parser.add_argument("--json", action="store_true", help="the resolved plan as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Print the plan."""
    from run_benchmarks.metrics.export import check_port
    from run_benchmarks.plan.as_dict import plan_as_dict
    from run_benchmarks.plan_view import plan_lines

    plan = options.plan_of(arguments)
    check_port(plan.run)
    if arguments.json:
        put(json.dumps(plan_as_dict(plan), indent=2))
    else:
        put("\n".join(plan_lines(plan)))
    return ExitCode.SUCCESS
