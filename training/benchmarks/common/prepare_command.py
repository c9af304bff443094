"""How a case's data are prepared, in words for a remedy that is read in some rank's log."""

from __future__ import annotations


def prepare_command(model: str, *words: str) -> str:
    """The command, where it is to be run, and by which interpreter."""
    command = " ".join(("python3", "-m", f"benchmarks.{model}.prepare", *words))
    packages = f"benchmarks/{model}/prepare/requirements.txt"
    return f"in FlagPerf's training/ folder, by a Python that has the packages of {packages}: {command}"
