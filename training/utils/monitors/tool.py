"""Accelerators sampled by their vendor's command-line tool, where the vendor has no library for Python.

Each sample starts the tool, which costs processor time and may take longer than an interval: the monitor's own cost
and the ticks that were missed stand in the inventory.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from utils.bounded_run import TooMuchOutputError, run_bounded
from utils.errors import FlagPerfError, raised
from utils.telemetry.records import Sample

TIMEOUT_S = 20.0
LONGEST_OUTPUT = 2**22  # bytes: sixty-four devices in a tool's most talkative form have some hundred thousand
MOST_SHOWN = 200
IN_CONTAINER = "see that the container gets it (CONTAINER_OPTIONS), or that the host has it on its PATH"
NO_VARIABLES: Mapping[str, str] = {}

if TYPE_CHECKING:  # monitors import this in images with old Pythons too, which cannot evaluate it
    # What a tool printed -> the number of each device -> what it says of it; time and source are filled in here.
    Parser = Callable[[str], Mapping[str, Sample]]


@dataclass
class Tool:
    """The devices that a command lists, as a `DeviceMonitor`.

    source: the vendor's name. note: what the figures are and are not. argv: the command, which prints the readings of
    all devices. parse: raises FlagPerfError or ValueError where that is not what the tool printed.
    """

    source: str
    note: str
    argv: Sequence[str]
    parse: Parser
    _seen: dict[str, None] = field(default_factory=dict)

    def open(self) -> Tool:
        """See what devices there are.

        Raises:
            FlagPerfError: the tool is not there, fails, or lists none.
        """
        self._seen = dict.fromkeys(self._readings())
        if not self._seen:
            raise FlagPerfError(f"{self.argv[0]} lists no device")
        return self

    def sample(self, time_ms: int) -> Sequence[Sample]:
        """One sample a device; one that was there and is not listed any more has its `error` set."""
        readings = self._readings()
        self._seen |= dict.fromkeys(readings)
        gone = Sample(0, "", error=f"{self.argv[0]} does not list it any more")
        return [
            replace(readings.get(device, gone), time_ms=time_ms, source=self.source, device=device)
            for device in self._seen
        ]

    def close(self) -> None:
        """Nothing is held."""

    def _readings(self) -> Mapping[str, Sample]:
        output = run_tool(self.argv)
        try:
            return self.parse(output)
        except (ValueError, LookupError, FlagPerfError) as error:
            reason = error.message if isinstance(error, FlagPerfError) else raised(error)
            raise FlagPerfError(f"what {self.argv[0]} printed is not understood: {reason}") from error


def run_tool(
    argv: Sequence[str],
    timeout_s: float = TIMEOUT_S,
    variables: Mapping[str, str] = NO_VARIABLES,
    remedy: str = IN_CONTAINER,
) -> str:
    """What a vendor's tool prints to its standard output, in the C locale.

    It is started where nobody else writes: an interpreter imports what lies in its folder, and that may be /tmp.

    Args:
        variables: of its environment, beside our own; remedy: for who does not have it.

    Raises:
        FlagPerfError: it is not there, does not end in time, prints too much, or ends with an error.
    """
    environment = {**os.environ, **variables, "LC_ALL": "C", "LANG": "C", "COLUMNS": "500"}
    try:
        done = run_bounded(argv, timeout_s=timeout_s, most=LONGEST_OUTPUT, cwd="/", env=environment)
    except FileNotFoundError as error:
        raise FlagPerfError(f"there is no {argv[0]}", remedy=remedy) from error
    except subprocess.TimeoutExpired as error:
        raise FlagPerfError(f"{argv[0]} did not end within {timeout_s:g} s") from error
    except OSError as error:
        raise FlagPerfError(f"{argv[0]} cannot be started: {error.strerror}") from error
    except TooMuchOutputError as error:
        raise FlagPerfError(f"{argv[0]} printed more than {LONGEST_OUTPUT} bytes, and was killed") from error
    if done.returncode:
        words = done.stderr.strip() or done.stdout.strip() or "it says nothing"
        raise FlagPerfError(f"{argv[0]} ended with {done.returncode}: {_end_of(words)}")
    return done.stdout


def _end_of(words: str) -> str:
    """About MOST_SHOWN at most; the word at the cut is left out, for a part of a secret is not known again."""
    if len(words) <= MOST_SHOWN:
        return words
    return "... " + (re.sub(r"\A\S*\s*", "", words[-MOST_SHOWN:]) or "(one long word, left out)")


def number_of(text: str) -> float | None:
    """The number at the beginning of a cell (`45C`, `65 W`, `12.5 %`); None for `N/A`, `-` and the like."""
    digits = ""
    for char in text.strip():
        if not (char.isascii() and (char.isdigit() or char in "+-.")):
            break
        digits += char
    try:
        return float(digits)
    except ValueError:
        return None
