"""Files of a result folder, written so that a reader sees all of one or nothing."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

BY_UMASK, PRIVATE = 0o666, 0o600  # modes of a file


def write_whole(path: Path, content: str | bytes, mode: int = BY_UMASK) -> None:
    """Put a file with `content`, a text in UTF-8, in place, over an earlier one.

    Raises:
        OSError: it could not be written; the error names it, and nothing is left beside it.
    """
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.touch(mode)
        partial.write_bytes(content.encode() if isinstance(content, str) else content)
        partial.replace(path)
    except BaseException as error:
        with suppress(OSError):
            partial.unlink()
        if isinstance(error, OSError):  # of a write to a full disk it does not say where
            error.filename, error.filename2 = str(path), None
        raise
