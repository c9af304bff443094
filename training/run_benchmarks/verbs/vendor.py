"""`run.py vendor list|new|check`: the vendors that there are, a new one, and what can be proven of one."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from run_benchmarks.commands import run_command
from run_benchmarks.exit_code import ExitCode
from run_benchmarks.output import complain, output_width, put
from run_benchmarks.verbs import options
from utils.errors import FlagPerfError, nearest

NAME = "vendor"
EXIT_CODES = (
    "exit codes: 0: no check failed; 1: one did; 2: the command line cannot be, and nothing was looked at"
)
PARTS = ("static", "monitor", "trial")  # of the kit
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
    listing = "the tool that lists its chips (default: NAME-smi)"
    new.add_argument("--tool", metavar="TOOL", default="", help=listing)
    proven = "prove what can be proven of a vendor's folder, without its chips and with them"
    check = actions.add_parser("check", help=proven, description=proven, epilog=EXIT_CODES)
    check.add_argument("name", metavar="NAME", type=options.name_of, help="the vendor to look at")
    only = f"this part alone: {', '.join(PARTS)} (may be repeated)"
    check.add_argument("--part", action="append", metavar="PART", choices=PARTS, help=only)
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

    files = make_vendor(arguments.name, arguments.chip, options.TRAINING_DIR, arguments.tool)
    put("\n".join(map(str, files)))
    complain(
        f"fill in what is marked, and see what is left: {run_command('vendor', 'check', arguments.name)}"
    )
    return ExitCode.SUCCESS


def _check(arguments: argparse.Namespace) -> int:
    from run_benchmarks.conformance.forms import as_markdown, as_text
    from run_benchmarks.conformance.kit import check_place, examine, write_report
    from run_benchmarks.conformance.records import CheckOutcome

    folder = _vendors_folder(arguments.name)
    python = _absolute(arguments.python)
    _check_python(python)
    output = arguments.output or Path(f"conformance-{folder.name}")
    check_place(output)
    report = examine(folder, arguments.part or PARTS, python, complain)
    write_report(report, as_markdown(report), output)
    put(f"{as_text(report, output_width())}\nwritten to {output.absolute()}")
    return ExitCode.CHECK_FAILED if report.of(CheckOutcome.FAILED) else ExitCode.SUCCESS


def _vendors_folder(name: str) -> Path:
    from run_benchmarks.conformance.folder import WRITE_VENDOR
    from run_benchmarks.plan.vendors import NO_VENDORS, VENDOR_FILE, find_vendors

    vendors, folder = find_vendors(options.TRAINING_DIR), options.TRAINING_DIR / name
    if name not in NO_VENDORS and folder.is_dir():
        if (folder / VENDOR_FILE).is_file():
            return folder
        raise FlagPerfError(f"has no {VENDOR_FILE}", where=str(folder), remedy=WRITE_VENDOR)
    remedy = nearest(name, vendors) or f"there is: {', '.join(vendors)}; `vendor new` makes another"
    raise FlagPerfError("there is no such vendor", where=name, remedy=remedy)


def _absolute(python: Path) -> Path:
    """As it is found from anywhere. A name alone is looked for on the PATH; the link of a virtual environment stays."""
    return Path(shutil.which(python) or python) if python.name == str(python) else python.absolute()


def _check_python(python: Path) -> None:
    from utils.monitors.tool import run_tool

    try:
        if run_tool((str(python), "-c", "print(6 * 7)")).strip() != "42":
            raise FlagPerfError("it is no Python")
    except FlagPerfError as error:
        remedy = "name the Python that has the framework, e.g. --python /opt/venv/bin/python"
        raise FlagPerfError(error.message, where=f"--python {python}", remedy=remedy) from error
