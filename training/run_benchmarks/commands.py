"""The commands that messages tell the user to type: whole, so that they can be pasted as they stand, in any folder."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

RUN_PY = Path(__file__).resolve().parent / "run.py"
DEFAULT_CONFIG = RUN_PY.parent / "config"


def run_command(*words: str) -> str:
    """`run.py` with these words, by the interpreter that runs now."""
    return shlex.join((sys.executable, str(RUN_PY), *words))


def preparation_help(training_dir: Path, model: str) -> str:
    """What tells from what a case's data are made: that is each preparation's own."""
    words = (sys.executable, "-m", f"benchmarks.{model}.prepare", "--help")
    return f"cd {shlex.quote(str(training_dir))} && {shlex.join(words)}"


def place_options(config_dir: Path, log_path: Path | None = None) -> tuple[str, ...]:
    """The options that lead a further command to the same files; none where they lie where they do by default.

    Args:
        config_dir: the folder with the two configuration files.
        log_path: where results go, if the command line said so.
    """
    config = config_dir.resolve()
    options = () if config == DEFAULT_CONFIG else ("--config", str(config))
    return options if log_path is None else (*options, "--log-path", str(log_path.resolve()))
