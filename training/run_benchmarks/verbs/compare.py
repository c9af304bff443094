"""`run.py compare`: runs, cases, rounds or groups of them against the first; a gate for CI where that is asked for."""

from __future__ import annotations

import argparse
import json
from contextlib import ExitStack
from typing import TYPE_CHECKING

from run_benchmarks.exit_code import ExitCode
from run_benchmarks.output import put
from run_benchmarks.verbs import options
from utils.errors import FlagPerfError

if TYPE_CHECKING:
    from run_benchmarks.comparison.records import Comparison

NAME = "compare"
HELP = "compare runs, cases or rounds with the first: what differs, the ratio of each figure, and whether it is shown"
# Format -> what the name of its file ends in.
ENDINGS = {
    "text": (".txt", ""),
    "markdown": (".md",),
    "json": (".json",),
    "html": (".html", ".htm"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What is compared, how it is shown, and what makes it fail."""
    options.add_config(parser)
    options.add_log_path(parser)
    parser.add_argument(
        "selectors",
        metavar="A",
        type=options.name_of,
        nargs="+",
        help="the base, and what is set against it: RUN, RUN/VENDOR, RUN/CASE or RUN/CASE/roundN (RUN: a folder, a "
        "name or `latest`); several with + between them are one group; a run of several vendors by itself: each "
        "vendor against the first",
    )
    parser.add_argument(
        "--figure",
        action="append",
        default=[],
        metavar="NAME",
        help="compare this figure alone (may be repeated)",
    )
    parser.add_argument(
        "--difference",
        type=_percent,
        default=0.05,
        metavar="PERCENT",
        help="say how many rounds would show a difference of so many percent (default: 5)",
    )
    parser.add_argument(
        "--even-if-not-comparable",
        action="store_true",
        help="compare all the same what differs in task, target, metric, rules or data",
    )
    parser.add_argument("--format", choices=list(ENDINGS), help="default: by the ending of FILE, else text")
    parser.add_argument(
        "--output",
        type=options.path_of,
        metavar="FILE",
        help="write it to FILE, a new one: .html, .md, .json or .txt",
    )
    parser.add_argument(
        "--fail-if",
        action="append",
        default=[],
        metavar="CONDITION",
        help='exit with 5 if it holds: "p_train < 0.95" (the ratio to the base), "slower(p_train) and energy > 105%%"; '
        "may be repeated",
    )
    parser.add_argument(
        "--junit",
        type=options.path_of,
        metavar="FILE",
        help="write the gates as JUnit XML to FILE, a new one, .xml",
    )


def run(arguments: argparse.Namespace) -> int:
    """Compare, show, and judge."""
    from run_benchmarks.comparison.compare import Choice, compare
    from run_benchmarks.comparison.gate import junit, parse_gate
    from run_benchmarks.comparison.selecting import groups_of
    from run_benchmarks.exports.destination import new_file

    if arguments.junit and not arguments.fail_if:
        raise FlagPerfError(
            "there is no gate to be written", where="--junit", remedy="say what is to fail: --fail-if"
        )
    choice = Choice(
        figures=arguments.figure,
        gates=[parse_gate(text) for text in arguments.fail_if],
        difference=arguments.difference,
        even_if_not_comparable=arguments.even_if_not_comparable,
    )
    form = _format(arguments)
    with ExitStack() as files:
        output, xml = (
            files.enter_context(new_file(file, endings)) if file else None
            for file, endings in ((arguments.output, ENDINGS[form]), (arguments.junit, (".xml",)))
        )
        secrets = options.secrets_of(arguments)
        groups = groups_of(arguments.selectors, options.log_path_of(arguments), secrets)
        comparison = compare(groups, choice)
        text = _rendered(comparison, form, is_file=bool(output))
        if output:
            output.write_bytes(f"{text.rstrip()}\n".encode(errors="replace"))
        if xml:
            xml.write_bytes(junit(comparison))
    put(f"written to {arguments.output}" if arguments.output else text)
    if comparison.is_refused:
        return ExitCode.NOT_COMPARABLE
    return ExitCode.GATE_FAILED if comparison.fails else ExitCode.SUCCESS


def _format(arguments: argparse.Namespace) -> str:
    """The format that is asked for, else that of the file's ending."""
    suffix = arguments.output.suffix.lower() if arguments.output else ""
    named = arguments.format or next((form for form, endings in ENDINGS.items() if suffix in endings), "")
    if not named:
        there = ", ".join(filter(None, (ending for endings in ENDINGS.values() for ending in endings)))
        message = f"a comparison has no form that ends in {suffix}"
        raise FlagPerfError(message, where=str(arguments.output), remedy=f"name it by one of {there}")
    return str(named)


def _rendered(comparison: Comparison, form: str, *, is_file: bool) -> str:
    if form == "json":
        return json.dumps(comparison.as_dict(), indent=2, allow_nan=False)
    if form == "html":
        from run_benchmarks.comparison.page import comparison_page

        return comparison_page(comparison)
    from run_benchmarks.comparison.forms import as_markdown, as_text
    from run_benchmarks.output import output_width

    if form == "markdown":
        return as_markdown(comparison)
    return as_text(comparison, None if is_file else output_width())


def _percent(text: str) -> float:
    try:
        value = float(text.rstrip("% ")) / 100
    except ValueError:
        value = 0.0
    if not 0.0001 <= value <= 10:
        raise argparse.ArgumentTypeError(f"{text!r} is no percentage from 0.01 to 1000")
    return value
