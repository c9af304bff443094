#!/usr/bin/env python3
"""FlagPerf's entry point: configs -> plan -> run -> results -> exit code.

Edit `config/cluster_conf.py` and `config/test_conf.py`, then, in `training/`:

    ../.venv/bin/python run_benchmarks/run.py

The other verbs (`run.py --help`) are the modules of `verbs/`.
"""

import sys
from pathlib import Path

# Python puts this file's own folder on the path; the packages lie one above it.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

from run_benchmarks.program import run_program  # noqa: E402 - first: a signal may come while the rest is loaded

NEEDED = ("asyncssh", "loguru", "pydantic", "rich")


def run_verb() -> int:
    """Do what the command line says; the exit code."""
    from run_benchmarks.verbs import main

    try:
        return main()
    except ModuleNotFoundError as error:  # a verb loads what it needs when it is chosen
        if error.name not in NEEDED:
            raise
        import shlex

        requirements = Path(sys.path[0]) / "requirements.txt"
        install = shlex.join((sys.executable, "-m", "pip", "install", "-r", str(requirements)))
        sys.exit(f"{error.name} is not installed\n    -> {install}")


if __name__ == "__main__":
    sys.exit(run_program(run_verb))
