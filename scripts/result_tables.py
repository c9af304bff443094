"""The tables of docs/results.md that are made from the registries of figures, verdicts and failure classes.

    .venv/bin/python scripts/result_tables.py docs/results.md

writes them anew, between the markers in that file. Adding a figure, a verdict or a class ends with this command.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training"))

from run_benchmarks.results.table import Table
from utils.figures import DEFINITIONS
from utils.records import FailureClass, Verdict


def figures_table() -> Table:
    """Every figure of FlagPerf's own; the last column is its heading in the tables of results."""
    rows = tuple(
        (
            f"`{each.name}`",
            each.unit,
            each.better or "",
            each.definition,
            each.window,
            each.absent,
            each.heading,
        )
        for each in DEFINITIONS.values()
    )
    return Table(("figure", "unit", "better", "definition", "window", "null where", "column"), rows, fixed=1)


def verdicts_table() -> Table:
    """Every verdict; the successes are those with which `run.py` exits with 0."""
    rows = tuple((f"`{each.value}`", each.meaning, "yes" if each.is_success else "") for each in Verdict)
    return Table(("verdict", "meaning", "success"), rows, fixed=1)


def classes_table() -> Table:
    """Every failure class; the last column says on which hosts the round is run again, if it is."""
    rows = (
        (f"`{each.value}`", each.meaning, each.fault.value if each.fault else "") for each in FailureClass
    )
    return Table(("class", "what went wrong", "run again"), tuple(rows), fixed=1)


TABLES = {"figures": figures_table, "verdicts": verdicts_table, "failure classes": classes_table}


def with_tables(text: str) -> str:
    """`text` with the tables between its markers as they are now.

    Raises:
        ValueError: a table's markers are not in `text`.
    """
    for name, table in TABLES.items():
        begin, end = f"<!-- table of {name}, made by scripts/result_tables.py -->", f"<!-- end of {name} -->"
        before, _, rest = text.partition(begin)
        _, marker, after = rest.partition(end)
        if not marker:
            raise ValueError(f"there is no {begin} with {end} behind it")
        text = f"{before}{begin}\n\n{table().markdown()}\n\n{end}{after}"
    return text


def main(arguments: Sequence[str]) -> int:
    """Write the tables into the file that is named."""
    (path,) = map(Path, arguments)
    path.write_text(with_tables(path.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
