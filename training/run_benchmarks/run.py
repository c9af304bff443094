#!/usr/bin/env python3
"""FlagPerf's entry point: configs -> plan -> run -> results -> exit code.

Edit `config/cluster_conf.py` and `config/test_conf.py`, then, in `training/`:

    ../.venv/bin/python run_benchmarks/run.py

The other verbs (`run.py --help`) are the modules of `verbs/`.
"""

import os
import sys

# Python puts this file's own folder on the path; the packages lie one above it.
# pathlib would take a while to load, in which a signal may come.
sys.path[0] = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))  # noqa: PTH120

try:
    from run_benchmarks.program import run_program
except KeyboardInterrupt:  # what is loaded here sees to signals from then on
    print("interrupted by SIGINT", file=sys.stderr)
    sys.exit(130)

OWN = ("run_benchmarks", "utils", "benchmarks")


def run_verb() -> int:
    """Do what the command line says; the exit code."""
    from run_benchmarks.verbs import main

    try:
        return main()
    except ModuleNotFoundError as error:  # a verb loads what it needs when it is chosen
        if not error.name or error.name.partition(".")[0] in OWN:
            raise
        import shlex
        from pathlib import Path

        requirements = Path(sys.path[0]) / "requirements.txt"
        install = shlex.join((sys.executable, "-m", "pip", "install", "-r", str(requirements)))
        sys.exit(f"{error.name} is not installed\n    -> {install}")


if __name__ == "__main__":
    sys.exit(run_program(run_verb))
