"""`run.py vendor list|new|check`: the vendors that there are, a new one, and what can be proven of one."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from run_benchmarks.commands import run_command
from run_benchmarks.exit_code import ExitCode
from run_benchmarks.output import complain, output_width, put
from run_benchmarks.verbs import options
from utils.errors import FlagPerfError, nearest

NAME = "vendor"
HELP = "list the vendors and what is proven of them, begin a new one, or prove one by the conformance kit"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to do, and with which vendor."""
    actions = parser.add_subparsers(
        dest="action", metavar="list|new|check", required=True, parser_class=argparse.ArgumentParser
    )
    shown = "every vendor, its chips, and what was seen on which hardware"
    actions.add_parser("list", help=shown, description=shown)
    made = "write a vendor's folder, with every place to be filled in marked"
    new = actions.add_parser("new", help=made, description=made)
    new.add_argument(
        "name", metavar="NAME", type=options.name_of, help="the vendor's, as its folder is called"
    )
    new.add_argument("--chip", metavar="CHIP", default="A1", help="the name of its first chip (default: A1)")
    proven = "prove what can be proven of a vendor's folder, without its chips and with them"
    check = actions.add_parser("check", help=proven, description=proven, epilog="exit code 1: a check failed")
    check.add_argument(
        "names", metavar="NAME", nargs="*", type=options.name_of, help="the vendors to look at"
    )
    check.add_argument("--all", action="store_true", help="all vendors")
    check.add_argument(
        "--part",
        action="append",
        metavar="PART",
        help="this part alone: static, monitor, trial (may be repeated)",
    )
    check.add_argument(
        "--output",
        type=options.path_of,
        metavar="FOLDER",
        help="where the report goes, as JSON and Markdown (default: ./conformance-NAME); an earlier one is replaced",
    )
    check.add_argument(
        "--python",
        type=options.path_of,
        metavar="PYTHON",
        default=Path(sys.executable),
        help="the Python that has the vendor's framework (default: the one that runs this)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Do it."""
    return {"list": _list, "new": _new, "check": _check}[arguments.action](arguments)


def _list(arguments: argparse.Namespace) -> int:
    from run_benchmarks.conformance.forms import vendors_text
    from run_benchmarks.plan.vendors import find_vendors

    folders = [options.TRAINING_DIR / name for name in find_vendors(options.TRAINING_DIR)]
    put(vendors_text(folders, output_width()))
    return ExitCode.SUCCESS


def _new(arguments: argparse.Namespace) -> int:
    from run_benchmarks.conformance.new import make_vendor

    files = make_vendor(arguments.name, arguments.chip, options.TRAINING_DIR)
    put("\n".join(map(str, files)))
    complain(
        f"fill in what is marked, and see what is left: {run_command('vendor', 'check', arguments.name)}"
    )
    return ExitCode.SUCCESS


def _check(arguments: argparse.Namespace) -> int:
    from run_benchmarks.conformance.forms import as_markdown, as_text
    from run_benchmarks.conformance.kit import check_place, examine, write_report
    from run_benchmarks.conformance.records import Outcome

    names, parts = _names(arguments), _parts(arguments)
    places = {name: _place(arguments.output, name, len(names)) for name in names}
    for place in places.values():
        check_place(place)
    has_failed = False
    for name, place in places.items():
        report = examine(options.TRAINING_DIR / name, parts, arguments.python, complain)
        write_report(report, as_markdown(report), place)
        put(f"{as_text(report, output_width())}\nwritten to {place.absolute()}")
        has_failed |= bool(report.of(Outcome.FAILED))
    return ExitCode.CHECK_FAILED if has_failed else ExitCode.SUCCESS


def _names(arguments: argparse.Namespace) -> list[str]:
    from run_benchmarks.plan.vendors import find_vendors

    vendors = find_vendors(options.TRAINING_DIR)
    for name in arguments.names:
        if name not in vendors:
            remedy = nearest(name, vendors) or f"there is: {', '.join(vendors)}; `vendor new` makes another"
            raise FlagPerfError("there is no such vendor", where=name, remedy=remedy)
    if not (arguments.names or arguments.all):
        raise FlagPerfError(
            "no vendor is named", where="vendor check", remedy=f"name one of {', '.join(vendors)}"
        )
    return vendors if arguments.all else list(dict.fromkeys(arguments.names))


def _parts(arguments: argparse.Namespace) -> list[str]:
    from run_benchmarks.conformance.kit import PARTS

    for part in arguments.part or ():
        if part not in PARTS:
            raise FlagPerfError(
                "is no part of the kit", where=f"--part {part}", remedy=f"use {', '.join(PARTS)}"
            )
    return arguments.part or list(PARTS)


def _place(output: Path | None, name: str, count: int) -> Path:
    if output is None:
        return Path(f"conformance-{name}")
    return output / name if count > 1 else output
