"""The options that verbs share, before the verb or after it, and what they lead to."""

from __future__ import annotations

import argparse
import errno
import os
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from run_benchmarks.commands import DEFAULT_CONFIG
from run_benchmarks.names import RUN_NAME, plain_path

if TYPE_CHECKING:
    from run_benchmarks.plan.records import Plan
    from run_benchmarks.plan.secrets import SecretsHere

TRAINING_DIR = Path(__file__).resolve().parents[2]
MOST_SHOWN = 60
# Set once, before the command line is read: an option that stands before the verb must not be undone after it.
DEFAULTS: dict[str, Any] = {
    "config": DEFAULT_CONFIG,
    "cases": None,
    "log_path": None,
    "continue_from": None,
}


def add_config(parser: argparse.ArgumentParser) -> None:
    """`--config DIR`."""
    parser.add_argument(
        "--config",
        type=path_of,
        metavar="DIR",
        default=argparse.SUPPRESS,
        help="the folder with cluster_conf.py and test_conf.py (default: run_benchmarks/config)",
    )


def add_log_path(parser: argparse.ArgumentParser) -> None:
    """`--log-path DIR`."""
    parser.add_argument(
        "--log-path",
        type=path_of,
        metavar="DIR",
        default=argparse.SUPPRESS,
        help="the folder of the result folders (default: FLAGPERF_LOG_PATH of test_conf.py)",
    )


def add_run(parser: argparse.ArgumentParser) -> None:
    """`RUN`, which may be left out; `results.find` looks for it."""
    parser.add_argument(
        "run",
        metavar="RUN",
        type=name_of,
        nargs="?",
        help="its result folder, its name, or `latest` (the default): the newest one",
    )


def add_open_run(parser: argparse.ArgumentParser) -> None:
    """`RUN` of what is done with a run that has not ended; `results.find.find_open_run` looks for it."""
    parser.add_argument(
        "run",
        metavar="RUN",
        type=name_of,
        nargs="?",
        help="its result folder, its name, or `latest`: the newest one (default: the newest that goes on, else the "
        "newest that was not refused by its checks of hosts)",
    )


def add_cases(parser: argparse.ArgumentParser) -> None:
    """`--cases CASE ...`."""
    parser.add_argument(
        "--cases",
        nargs="+",
        metavar="CASE",
        default=argparse.SUPPRESS,
        help="only these cases of test_conf.py",
    )


def add_plan_options(parser: argparse.ArgumentParser) -> None:
    """What says which plan is meant: `plan_of` makes it."""
    add_config(parser)
    add_cases(parser)
    add_log_path(parser)
    parser.add_argument(
        "--continue-from",
        type=name_of,
        metavar="RUN",
        default=argparse.SUPPRESS,
        help="let each round go on from the newest checkpoint of the same round of this earlier run",
    )


def name_of(text: str) -> str:
    """A path, or the name of what lies in one; argparse refuses it where no file can have it."""
    if not text:
        raise argparse.ArgumentTypeError("it is empty: does a variable of the shell's have no value?")
    try:
        os.lstat(text)
    except (OSError, ValueError) as error:
        if isinstance(error, ValueError) or error.errno == errno.ENAMETOOLONG:
            shown = text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."
            reason = f"no file can have this name of {len(text)} characters: {shown!r}"
            raise argparse.ArgumentTypeError(reason) from error
    return text


def run_id(text: str) -> str:
    """A run's name or its uid, and nothing that could stand for more than one run."""
    if not RUN_NAME.fullmatch(name_of(text)):
        example = "run20261120094218-d7e6a7"
        raise argparse.ArgumentTypeError(f"{text!r} is not the ID of a run, which looks like {example}")
    return text


def path_of(text: str) -> Path:
    """The same as a path."""
    return Path(name_of(text))


def plan_of(arguments: argparse.Namespace) -> Plan:
    """The plan that the command line and the files give.

    Raises:
        ProblemsError: something is wrong with them.
    """
    from run_benchmarks.plan.load import load_plan

    return load_plan(
        arguments.config,
        TRAINING_DIR,
        only_cases=arguments.cases,
        log_path=arguments.log_path,
        continue_from=arguments.continue_from,
    )


def secrets_of(arguments: argparse.Namespace) -> SecretsHere:
    """What is hidden in what is shown of a run: by value what the caller's settings hold, and by name.

    These are looked for once they are first asked for, as that executes the configuration.
    """
    from run_benchmarks.exports.redaction import shown_here

    return cache(partial(shown_here, arguments.config, TRAINING_DIR))


def log_path_of(arguments: argparse.Namespace) -> Path:
    """The folder of the result folders: as the command line says, else test_conf.py, which need not be valid."""
    given: Path | None = arguments.log_path
    if given is not None:
        return plain_path(given)
    from run_benchmarks.plan.config_file import read_leniently
    from run_benchmarks.plan.settings import log_path_in

    return log_path_in(read_leniently(arguments.config / "test_conf.py"), TRAINING_DIR)
