"""The fault matrix: run all its rows, and write what was seen into docs/fault-matrix.md.

    .venv/bin/python scripts/fault_matrix.py FOLDER [options and files of pytest]

Each row leaves a record in FOLDER. With options (`-k cable`), or files, only some rows run again; the others stand as
FOLDER has them from before.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training"))

from run_benchmarks.results.table import Table
from tests.run_benchmarks.faults.rows import ROWS

CHECKOUT = Path(__file__).resolve().parents[1]
PAGE = CHECKOUT / "docs" / "fault-matrix.md"
BEGIN, END = "<!-- table of faults, made by scripts/fault_matrix.py -->", "<!-- end of faults -->"
NOT_RUN = "not run"
HEADINGS = ("fault", "where", "expected", "seen", "s to the verdict")


def table(folder: Path) -> Table:
    """Every row, with what its record in `folder` says."""
    rows = []
    for row in ROWS:
        record = folder / f"{row.key}.json"
        seen = json.loads(record.read_text(encoding="utf-8")) if record.is_file() else None
        shown = (seen["seen"], f"{seen['seconds']:.0f}") if seen else (NOT_RUN, "")
        rows.append((row.fault, row.where, row.expected, *shown))
    return Table(HEADINGS, tuple(rows), fixed=1)


def with_table(text: str, shown: Table) -> str:
    """`text` with the table between its markers.

    Raises:
        ValueError: the markers are not in `text`.
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"there is no {BEGIN} with {END} behind it")
    return f"{before}{BEGIN}\n\n{shown.markdown()}\n\n{END}{after}"


def main(arguments: Sequence[str]) -> int:
    """Run the rows and write the table; pytest's exit code."""
    if not arguments:
        print(__doc__, file=sys.stderr)
        return 2
    folder, *options = arguments
    chosen = ("-m", "fault", f"--faults={Path(folder).resolve()}", *options)
    where = () if any(word.startswith("tests/") for word in options) else ("tests/run_benchmarks",)
    command = [sys.executable, "-m", "pytest", *chosen, *where]
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    done = subprocess.run(command, cwd=CHECKOUT, env={**os.environ, "PATH": path})
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), table(Path(folder))), encoding="utf-8")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
