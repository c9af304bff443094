"""Files written so that a reader sees all of one or nothing, through no link that somebody put in the way."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

BY_UMASK, PRIVATE = 0o666, 0o600  # modes of a file


def write_whole(path: Path, content: str | bytes, mode: int = BY_UMASK) -> None:
    """Put a file with `content`, a text in UTF-8, in place, over an earlier one; raises as `whole_file`."""
    with whole_file(path, mode) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def whole_file(path: Path, mode: int = BY_UMASK) -> Iterator[BinaryIO]:
    """A file to write, which is put in place, over an earlier one, when that has gone well.

    Raises:
        OSError: it could not be written; the error names it, and nothing is left beside it.
    """
    # a new file, of a name that nobody knows: a stranger's folder may hold links and pipes of any other one
    partial = path.with_name(f".{path.name}.{token_hex(8)}.partial")
    try:
        with open(partial, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
            yield file
        partial.replace(path)
    except BaseException as error:
        with suppress(OSError):
            partial.unlink()
        if isinstance(error, OSError):  # of a write to a full disk it does not say where
            error.filename = str(path)
        raise
