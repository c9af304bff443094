"""What goes to standard output, and what is said where that cannot be written; and what verbs say on standard error.

Texts from outside stand in both: what would steer a terminal is left out.
"""

from __future__ import annotations

import shutil
import sys

from run_benchmarks.program import discard_output
from utils.errors import FlagPerfError
from utils.text_files import printable


class NotPrintedError(FlagPerfError):
    """Standard output cannot be written."""


def put(text: str) -> None:
    """Print `text` and a line's end on standard output, now.

    Raises:
        NotPrintedError: it cannot be written: it is closed, or a file on a full disk.
        BrokenPipeError: whoever read it has gone.
    """
    try:
        print(printable(text), flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        discard_output()
        raise NotPrintedError(
            f"standard output cannot be written: {error.strerror}",
            remedy="send it to a terminal, a pipe, or a file that has room",
        ) from error


def complain(text: object) -> None:
    """Print `text`, a problem or what is to be known beside the output, and a line's end on standard error."""
    print(printable(str(text)), file=sys.stderr)


def output_width() -> int | None:
    """Of the terminal that standard output is; None where it is none, as in a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None
