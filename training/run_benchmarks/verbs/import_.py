"""`run.py import`: the cases and vendors of a checkout of public FlagPerf, laid beside those that are here."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from run_benchmarks.commands import run_command
from run_benchmarks.exit_code import ExitCode
from run_benchmarks.output import output_width, put
from run_benchmarks.verbs import options
from utils.errors import FlagPerfError

if TYPE_CHECKING:
    from run_benchmarks.imports.laying import ImportedItem, Laying

NAME = "import"
MOST_SIZES = 3  # of a case that are shown
HELP = "lay the cases and vendors of a checkout of public FlagPerf in place, or take them away again"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which checkout, and what of it."""
    parser.add_argument(
        "path",
        metavar="PATH",
        nargs="?",
        type=options.path_of,
        help="the checkout; with --undo all of them if it is left out",
    )
    parser.add_argument(
        "--vendor", action="append", default=[], metavar="NAME", help="only this vendor's (may be repeated)"
    )
    parser.add_argument(
        "--cases",
        nargs="+",
        metavar="CASE",
        default=argparse.SUPPRESS,
        help="only these: MODEL, MODEL:FRAMEWORK, or keys of test_conf.py",
    )
    parser.add_argument(
        "--undo", action="store_true", help="take away what was laid down; files changed since are kept"
    )
    parser.add_argument("--show", action="store_true", help="only print the table; nothing is copied")


def run(arguments: argparse.Namespace) -> int:
    """Lay it down and say what came, or take it away."""
    if arguments.undo:
        return _undo(arguments.path)
    if arguments.path is None:
        remedy = "git clone https://github.com/FlagOpen/FlagPerf, and give that folder"
        raise FlagPerfError("no checkout is given", where="PATH", remedy=remedy)
    from run_benchmarks.imports.checkout import Checkout
    from run_benchmarks.imports.laying import lay_down, lay_out

    checkout = Checkout(arguments.path)
    laying = lay_out(checkout, options.TRAINING_DIR, arguments.vendor, arguments.cases or ())
    notes = list(laying.notes)
    if not arguments.show:
        new = lay_down(laying, checkout, options.TRAINING_DIR)
        undo = run_command(NAME, "--undo", str(arguments.path.absolute()))
        notes += [f"{new} of {len(laying.files)} files are new in {options.TRAINING_DIR}; take away: {undo}"]
    put("\n".join([_table(laying), *(f"- {note}" for note in notes)]))
    return ExitCode.SUCCESS


def _table(laying: Laying) -> str:
    from run_benchmarks.results.table import Table

    headings = ("vendor", "in the checkout", "here", "sizes", "note")
    cells = tuple((row.vendor, row.name, row.here or "not", _few(row), row.note) for row in laying.rows)
    return Table(headings, cells, fixed=3, is_grouped=True).text(output_width())


def _few(row: ImportedItem) -> str:
    more = len(row.sizes) - MOST_SIZES
    return " ".join([*row.sizes[:MOST_SIZES], *([f"and {more} more"] if more > 0 else [])])


def _undo(path: Path | None) -> int:
    from run_benchmarks.imports.record import Imports, read_imports, take_away, write_imports

    training = options.TRAINING_DIR
    imports = read_imports(training)
    names = {str(folder.resolve()) for folder in (path, path / "training")} if path else {*imports.checkouts}
    chosen = {name: laid for name, laid in imports.checkouts.items() if name in names}
    if not chosen:
        there = ", ".join(imports.checkouts) or "none"
        message = f"nothing of {path or 'any checkout'} was laid down here; imported are: {there}"
        raise FlagPerfError(message, where=str(training))
    for name, laid in chosen.items():
        removed, kept = take_away(training, laid)
        rest = {other: each for other, each in imports.checkouts.items() if other != name}
        imports = Imports(rest)
        write_imports(training, imports)
        put(f"{name}: {removed} files were taken away")
        for file in kept:
            put(f"- kept, as it was changed since: {training / file}")
    return ExitCode.SUCCESS
