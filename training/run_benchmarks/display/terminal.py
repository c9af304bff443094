"""How this run is shown: found out from standard error, its locale, and rich's own rules (NO_COLOR, TERM, ...)."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from run_benchmarks.display.base import Display
from run_benchmarks.display.guarded import Guarded
from run_benchmarks.display.lines import PlainLines
from run_benchmarks.display.panel import Panel
from run_benchmarks.run_log import SHORT_HEAD, log_briefly, log_to_terminal

STYLES = {"WARNING": "yellow", "ERROR": "red", "DEBUG": "bright_black"}
# What Python puts into LC_CTYPE where the locale is C (PEP 538): the terminal knows no more for it.
REPAIRED = "C.UTF-8"


def open_display(level: str) -> Display:
    """The display for standard error, where the log of `level` is shown from now on.

    A terminal gets short lines and, where its cursor can be moved, a panel; all else the log in its documented
    format, also where FORCE_COLOR asks for colours in a file: programs read it.
    """
    console = TerminalConsole(stderr=True, markup=False, emoji=False, highlight=False)
    if not (console.is_terminal and sys.stderr.isatty()):
        log_to_terminal(level)
        return Guarded(PlainLines())
    log_briefly(level, lambda name, line: print_line(console, name, line))
    return Guarded(Panel(console) if console.is_interactive else PlainLines())


def print_line(console: Console, level: str, line: str) -> None:
    """Print a line of the log, above a panel that is there."""
    text = "\n".join(wrapped(part, console.width) for part in line.expandtabs().splitlines())
    console.print(Text(text, STYLES.get(level, "")), soft_wrap=True)


def wrapped(line: str, width: int) -> str:
    """The line with blanks put in, so that a terminal of `width` cells breaks it between words, below its text.

    It stays one line: what is copied from it, such as a command, can be pasted.
    """
    first, *words = line.split(" ")
    rows, indent = [first], " " * min(SHORT_HEAD, width // 2)
    for word in words:
        longer = f"{rows[-1]} {word}"
        if cell_len(longer) <= width or not rows[-1].strip():
            rows[-1] = longer
        else:
            rows.append(indent + word)
    return "".join(row + " " * (-cell_len(row) % width) for row in rows[:-1]) + rows[-1]


class TerminalConsole(Console):
    """A console that draws with ASCII where the locale says no better, though Python writes UTF-8 everywhere."""

    @property
    def encoding(self) -> str:
        """What may be drawn in."""
        return super().encoding if speaks_utf8(os.environ) else "ascii"


def speaks_utf8(environment: Mapping[str, str]) -> bool:
    """Whether the locale that the user set for characters is one of UTF-8."""
    ctype, language = environment.get("LC_CTYPE", ""), environment.get("LANG", "")
    name = environment.get("LC_ALL") or (language if ctype == REPAIRED else ctype) or language
    return "utf8" in name.lower().replace("-", "")
