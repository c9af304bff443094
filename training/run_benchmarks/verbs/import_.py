"""`run.py import`: the cases and vendors of a checkout of public FlagPerf, laid beside those that are here."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from run_benchmarks.commands import run_command
from run_benchmarks.exit_code import ExitCode
from run_benchmarks.output import output_width, put
from run_benchmarks.verbs import options
from utils.errors import FlagPerfError
from utils.text_files import one_line

if TYPE_CHECKING:
    from run_benchmarks.imports.laying import Laying

NAME = "import"
HELP = "lay the cases and vendors of a checkout of public FlagPerf in place, or take them away again"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which checkout, and what of it."""
    parser.add_argument("path", metavar="PATH", nargs="?", type=options.path_of, help="the checkout")
    only = "only this vendor's (may be repeated)"
    parser.add_argument("--vendor", action="append", default=[], metavar="NAME", help=only)
    parser.add_argument(
        "--cases",
        nargs="+",
        metavar="CASE",
        default=argparse.SUPPRESS,
        help="only these: MODEL, MODEL:FRAMEWORK, or keys of test_conf.py",
    )
    away = "take away all that was laid down; files changed since are kept"
    parser.add_argument("--undo", action="store_true", help=away)
    parser.add_argument("--show", action="store_true", help="only print the table; nothing is copied")


def run(arguments: argparse.Namespace) -> int:
    """Lay it down and say what came, or take it away."""
    if arguments.undo and arguments.path:
        raise FlagPerfError("takes away all that was laid down", where="--undo", remedy="leave PATH out")
    if arguments.undo:
        return _undo()
    if arguments.path is None:
        remedy = "git clone https://github.com/FlagOpen/FlagPerf, and give that folder"
        raise FlagPerfError("no checkout is given", where="PATH", remedy=remedy)
    from run_benchmarks.imports.checkout import Checkout
    from run_benchmarks.imports.laying import lay_down, lay_out

    checkout = Checkout(arguments.path)
    laying = lay_out(checkout, options.TRAINING_DIR, arguments.vendor, arguments.cases or ())
    notes = list(laying.notes)
    if not arguments.show:
        new = lay_down(laying, options.TRAINING_DIR)
        undo = run_command(NAME, "--undo")
        notes += [f"{new} of {len(laying.files)} files are new in {options.TRAINING_DIR}; take away: {undo}"]
    put("\n".join([_table(laying), *(f"- {one_line(note)}" for note in notes)]))
    return ExitCode.SUCCESS


def _table(laying: Laying) -> str:
    from run_benchmarks.results.table import Table

    headings = ("vendor", "in the checkout", "here", "sizes", "note")
    cells = tuple(
        (row.vendor, row.name, row.here or "not", " ".join(row.sizes), row.note) for row in laying.rows
    )
    return Table(headings, cells, fixed=3, is_grouped=True).text(output_width())


def _undo() -> int:
    from run_benchmarks.imports.record import take_away

    removed, kept = take_away(options.TRAINING_DIR)
    put(f"{removed} files were taken away")
    for file in kept:
        put(f"- kept, as it was changed since: {options.TRAINING_DIR / file}")
    return ExitCode.SUCCESS
