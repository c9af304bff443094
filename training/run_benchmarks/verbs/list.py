"""`run.py list`: the rounds of all runs of a result directory, filtered and sorted."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from run_benchmarks.exit_code import ExitCode
from run_benchmarks.output import complain, output_width, put
from run_benchmarks.verbs import options
from utils.records import Verdict

if TYPE_CHECKING:
    from run_benchmarks.history.index import Index
    from run_benchmarks.history.query import Query, Row

NAME = "list"
HELP = "list the rounds of all runs: filtered, sorted, as a table or as JSON"
MOST_ROWS = 50
LARGEST_LIMIT = 10**9
WORTH_SAYING = 100  # runs to be read: that takes some seconds


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which rounds, in which order, and what of them."""
    options.add_config(parser)
    options.add_log_path(parser)
    parser.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="CONDITION",
        help='such as "p_train > 100", "verdict = CONVERGED", "hosts ~ node7"; given again: all of them',
    )
    parser.add_argument("--case", metavar="TEXT", help="only cases in whose name this stands")
    parser.add_argument(
        "--verdict",
        metavar="VERDICT",
        type=str.upper,
        choices=[verdict.value for verdict in Verdict],
        help=f"only rounds that ended with it: {', '.join(verdict.value for verdict in Verdict)}",
    )
    parser.add_argument(
        "--since", metavar="TIME", help="begun since then: 2026-11-20, 2026-11-20T09:30, 12h, 7d"
    )
    parser.add_argument(
        "--sort",
        metavar="NAME",
        default="-started",
        help="by a column or a figure, as in --sort=-p_train: the largest first (default: the newest first)",
    )
    parser.add_argument(
        "--columns", metavar="NAMES", help="of these columns and figures, separated by commas"
    )
    parser.add_argument(
        "--limit",
        metavar="N",
        type=_limit,
        default=MOST_ROWS,
        help=f"so many at most, 0: all (default: {MOST_ROWS})",
    )
    parser.add_argument(
        "--rebuild", action="store_true", help="read every run anew, not only what has changed"
    )
    parser.add_argument("--json", action="store_true", help="as JSON, with all figures")


def run(arguments: argparse.Namespace) -> int:
    """Print it."""
    from run_benchmarks.history.index import Index
    from run_benchmarks.history.query import check_names, count, select

    query = _query(arguments)
    columns = [name.strip() for name in (arguments.columns or "").split(",") if name.strip()]
    places = (options.log_path_of(arguments), options.secrets_of(arguments))
    index = Index(*places, rebuild=arguments.rebuild)
    try:
        fill(index)
        check_names(index, columns)
        rows = select(index, query)
        number = count(index, query) if len(rows) == query.limit else len(rows)
    finally:
        index.close()
    put(_as_json(index, rows) if arguments.json else _as_text(index, rows, columns, query))
    if len(rows) < number:
        complain(f"{len(rows)} of {number} rounds; --limit 0 gives all")
    return ExitCode.SUCCESS


def fill(index: Index) -> None:
    """See which runs are new or have changed; say so where that will take a while."""
    if index.file is None:
        complain(f"every run is read anew each time: {index.why_in_memory}")

    def tell(count: int) -> None:
        if count >= WORTH_SAYING:
            complain(f"reading {count} runs that are new or have changed ...")

    index.refresh(tell)


def _query(arguments: argparse.Namespace) -> Query:
    from run_benchmarks.history.query import Condition, Query, condition_of

    conditions = [condition_of(text) for text in arguments.where]
    shorter = (
        ("case", "~", arguments.case),
        ("verdict", "=", arguments.verdict),
        ("started", ">=", arguments.since),
    )
    conditions += [Condition(name, sign, value) for name, sign, value in shorter if value is not None]
    return Query(tuple(conditions), arguments.sort, arguments.limit or None)


def _as_json(index: Index, rows: list[Row]) -> str:
    from run_benchmarks.history.listing import as_dict

    return json.dumps({"folder": str(index.log_path), "rounds": [as_dict(row) for row in rows]}, indent=2)


def _as_text(index: Index, rows: list[Row], names: Sequence[str], query: Query) -> str:
    from run_benchmarks.history.listing import cell, columns_of, heading, remarks, with_several_units
    from run_benchmarks.results.table import Table

    if not rows:
        what = "no round of the runs in {} is like that" if query.conditions else "there is no run in {}"
        return what.format(index.log_path)
    columns = tuple(dict.fromkeys(names)) or columns_of(rows)
    headings = tuple(heading(column, rows) for column in columns)
    mixed = with_several_units(columns, rows)
    cells = tuple(tuple(cell(row, column, with_unit=column in mixed) for column in columns) for row in rows)
    table = Table(headings, cells, fixed=min(3, len(columns)))
    return "\n".join(
        [table.text(output_width()), *(f"- {line}" for line in remarks(rows, columns, index.log_path))]
    )


def _limit(text: str) -> int:
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(LARGEST_LIMIT))
    if not is_number or int(text) > LARGEST_LIMIT:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 0 to {LARGEST_LIMIT}")
    return int(text)
