"""Weak scaling of a search: the demo on one host of the lab, and on two with a worker each.

    .venv/bin/python benches/search_scaling.py [--rounds 3]

As root, and as test.sh has set this machine up. Hosts are containers with a network of their own on this machine, each
with a core for its worker's rank where there are two; what else a search needs, its controller, its proposals and its
monitors, is on the same cores. A round takes some 80 s. The table is the one that `run.py show` prints: the score of a
worker of two, against that of one alone. Last line: JSON.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "training")]

from run_benchmarks.plan.secrets import by_name_alone  # noqa: E402
from run_benchmarks.results.load import load_run  # noqa: E402
from run_benchmarks.results.round_result import RoundResult  # noqa: E402
from run_benchmarks.results.search.scaling import scaling_table  # noqa: E402
from run_benchmarks.results.table import aligned  # noqa: E402
from tests.lab.lab import Lab  # noqa: E402
from tests.run_benchmarks.e2e.harness import Bench  # noqa: E402
from tests.run_benchmarks.e2e.searching import make_search_image  # noqa: E402
from tests.run_benchmarks.e2e.setup import BASE_IMAGE, demo_data  # noqa: E402

CASES = ("search:pytorch:cpu:1:1:1", "search:pytorch:cpu:2:1:1")


def results(folder: Path, rounds: int) -> Iterator[RoundResult]:
    """Of both by turns, so that what else goes on on the machine hits both.

    Raises:
        SystemExit: a round was not measured.
    """
    for name in ("run", "image"):
        (folder / name).mkdir()
    with Lab(2, images=[make_search_image(folder / "image"), BASE_IMAGE]) as lab:
        bench = Bench(folder / "run", ["h1", "h2"], lab.env)
        bench.test(CASES=dict.fromkeys(CASES, str(demo_data("search"))))
        for _ in range(rounds):
            ended = bench.run()
            if ended.code or ended.folder is None:
                sys.exit(ended.output)
            yield from load_run(ended.folder, by_name_alone).results


def main() -> None:
    """Print the table, and the mean of what two come to."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3, help="of each case")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table = scaling_table(list(results(Path(folder), arguments.rounds)))
    print(aligned([table.headings, *table.rows]), *table.footnotes, sep="\n")
    parts = [float(row[-1]) for row in table.rows if row[table.headings.index("workers")] == "2"]
    print(json.dumps({"weak_scaling": round(statistics.fmean(parts), 3)}))


if __name__ == "__main__":
    main()
