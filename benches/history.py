"""How long the index of 1,000 runs takes: made anew (`rebuild_s`), and listed when nothing has changed (`list_s`).

    .venv/bin/python benches/history.py [--runs 1000]

Each is one whole `run.py list --limit 0`, a process of its own, so that its start counts too.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "training")]

RUN_PY = ROOT / "training" / "run_benchmarks" / "run.py"


def measured(runs: int, folder: Path) -> Mapping[str, float]:
    """`rebuild_s` and `list_s` of so many runs of three rounds, which are made below `folder`."""
    from tests.run_benchmarks.results.made_runs import make_runs

    make_runs(folder / "result", runs)
    command = (sys.executable, str(RUN_PY), "list", "--log-path", str(folder / "result"), "--limit", "0")
    env = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    seconds = {}
    for name, options in {"rebuild_s": ("--rebuild",), "list_s": ()}.items():
        begin = time.perf_counter()
        subprocess.run((*command, *options), check=True, env=env, stdout=subprocess.DEVNULL)
        seconds[name] = round(time.perf_counter() - begin, 3)
    return seconds


def main() -> None:
    """Make the runs, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=1000)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        seconds = measured(runs, Path(folder))
    print(f"{runs} runs: made anew in {seconds['rebuild_s']} s, listed in {seconds['list_s']} s")
    print(json.dumps(dict(seconds)))


if __name__ == "__main__":
    main()
