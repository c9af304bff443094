#!/usr/bin/env python3
"""FlagPerf's entry point: configs -> plan -> run -> report -> exit code.

Edit `config/cluster_conf.py` and `config/test_conf.py`, then, in `training/`:

    python3 run_benchmarks/run.py
"""

import sys
from pathlib import Path

# Python puts this file's own folder on the path; the packages lie one above it.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

try:
    from run_benchmarks.cli import main
except ModuleNotFoundError as error:
    if error.name not in ("asyncssh", "loguru", "pydantic", "rich"):
        raise
    requirements = Path(sys.path[0]) / "requirements.txt"
    sys.exit(f"{error.name} is not installed\n    -> {sys.executable} -m pip install -r {requirements}")

if __name__ == "__main__":
    sys.exit(main())
