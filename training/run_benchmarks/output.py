"""What goes to standard output, and what is said where that cannot be written."""

from __future__ import annotations

from run_benchmarks.program import discard_output
from utils.errors import FlagPerfError


class NotPrintedError(FlagPerfError):
    """Standard output cannot be written."""


def put(text: str) -> None:
    """Print `text` and a line's end on standard output, now.

    Raises:
        NotPrintedError: it cannot be written: it is closed, or a file on a full disk.
        BrokenPipeError: whoever read it has gone.
    """
    try:
        print(text, flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        discard_output()
        raise NotPrintedError(
            f"standard output cannot be written: {error.strerror}",
            remedy="send it to a terminal, a pipe, or a file that has room",
        ) from error
