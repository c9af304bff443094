"""`run.py reproduce`: an archived run once more, on today's hosts, and the two compared."""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from run_benchmarks.exit_code import ExitCode
from run_benchmarks.output import complain, put
from run_benchmarks.verbs import options
from utils.errors import FlagPerfError

if TYPE_CHECKING:
    from run_benchmarks.exports.reproduction import Reproduction
    from run_benchmarks.plan.secrets import SecretsHere

NAME = "reproduce"
HELP = (
    "run the plan of an archive again on today's hosts, with this checkout's code, and compare the two runs"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which archive."""
    options.add_config(parser)
    options.add_log_path(parser)
    parser.add_argument("archive", metavar="ARCHIVE", type=options.path_of, help="what `run.py export` made")
    parser.add_argument(
        "--show",
        action="store_true",
        help="only say what differs between then and now; no host is touched, and nothing of the archive executed",
    )


def run(arguments: argparse.Namespace) -> int:
    """Say what differs, run it, and compare."""
    from run_benchmarks.exports.archive import RUN
    from run_benchmarks.exports.reproduction import reproduction
    from run_benchmarks.exports.unpacking import unpack
    from utils.text_files import one_line

    with tempfile.TemporaryDirectory(prefix="flagperf-reproduce-") as name:
        work = Path(name)
        unpacked = work / "archive"
        unpacked.mkdir()
        about = unpack(arguments.archive, unpacked)
        log_path = options.log_path_of(arguments)
        made = reproduction(unpacked, about, arguments.config, options.TRAINING_DIR, log_path, work)
        complain(one_line(f"{about.get('run')}, from {arguments.archive}, again:"))
        for line in made.differs or ("the code and the parameters are what they were",):
            complain(one_line(f"- {line}"))
        if arguments.show:
            return ExitCode.SUCCESS
        return _run_and_compare(made, unpacked / RUN, arguments.archive, options.secrets_of(arguments))


def _run_and_compare(made: Reproduction, unpacked: Path, archive: Path, secrets: SecretsHere) -> int:
    from run_benchmarks.comparison.compare import Choice, compare
    from run_benchmarks.comparison.forms import as_text
    from run_benchmarks.comparison.selecting import groups_of
    from run_benchmarks.foreground import run_in_foreground
    from run_benchmarks.output import output_width

    folders: list[Path] = []
    code = run_in_foreground(made.plan, folders.append)
    try:
        base, again = groups_of([str(unpacked), folders[0].name], folders[0].parent, secrets)
        # the archive is named, and not the folder in which it lies as long as this goes on
        notes = [note.replace(str(unpacked), str(archive)) for note in base.notes]
        base = replace(base, selector=str(archive), notes=notes)
        put(as_text(compare([base, again], Choice()), output_width()))
    except FlagPerfError as error:  # to the caller it would mean that nothing was launched
        complain(error)
    return code
