"""Runs the tools that the lab is made of; a failure says which command, what it printed and what to do."""

from __future__ import annotations

import shlex
import subprocess
import time
from collections.abc import Callable, Sequence


class LabError(Exception):
    """The lab could not do what was asked; `remedy` says what to do next."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(f"{message}\n  -> {remedy}" if remedy else message)


def run(argv: Sequence[str], *, stdin: str = "", timeout: float = 60.0) -> str:
    """Runs `argv` on this machine and returns its stdout.

    Raises:
        LabError: the command is missing, fails, or takes longer than `timeout` seconds.
    """
    try:
        done = subprocess.run(argv, input=stdin, capture_output=True, text=True, timeout=timeout)
    except FileNotFoundError as error:
        raise LabError(f"there is no command {argv[0]!r}", "see tests/lab/README.md") from error
    except subprocess.TimeoutExpired as error:
        raise LabError(f"{shlex.join(argv)} took longer than {timeout:.0f} s") from error
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()
        raise LabError(f"{shlex.join(argv)} ended with {done.returncode}: {said}")
    return done.stdout


def succeeds(argv: Sequence[str]) -> bool:
    """Whether `argv` exits with 0; for questions whose "no" is an answer and not an error."""
    return subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True).returncode == 0


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Polls `condition` every 10 ms; False if it did not become true within `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
