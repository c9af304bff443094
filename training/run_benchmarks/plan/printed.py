"""What code prints that is executed apart: passed on to standard error, up to a bound."""

from __future__ import annotations

import os
import sys
from codecs import getincrementaldecoder
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import wait
from pathlib import Path

from run_benchmarks.output import complain
from utils.text_files import printable

MOST_PRINTED = 2**20  # bytes
_AT_ONCE = 2**16  # bytes


class Printed:
    """The pipe into which the code of `path` prints. None of it is kept; after the bound the pipe is broken."""

    def __init__(self, path: Path) -> None:
        self.path, self.room = path, MOST_PRINTED
        self.reader, self.writer = Pipe(duplex=False)
        self._decoder = getincrementaldecoder("utf-8")("replace")  # what is read may end within a character

    def take_streams(self) -> None:
        """In the process that executes the code: what it and all that it starts print goes into the pipe."""
        self.reader.close()
        for number in (1, 2):
            os.dup2(self.writer.fileno(), number)
        self.writer.close()
        # what the code prints is no part of what was asked for
        sys.stdout = sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115

    def pass_on(self) -> None:
        """Show what has come, once something or the end has, without what would steer a terminal."""
        content = os.read(self.reader.fileno(), _AT_ONCE)
        with suppress(OSError):  # nobody reads standard error any more, or its disk is full
            with os.fdopen(os.dup(2), "wb") as shown:
                text = self._decoder.decode(content[: self.room], final=not content)
                shown.write(printable(text.replace("\r\n", "\n")).encode())
            if len(content) > self.room:
                complain(f"\n{self.path}: prints more than {MOST_PRINTED} bytes: the rest is left out")
        if not content or len(content) > self.room:
            self.reader.close()
        self.room -= len(content)

    def end(self) -> None:
        """Show what is left, and wait for no more: what the code has started may print for ever."""
        while not self.reader.closed and wait([self.reader], 0):
            self.pass_on()
        self.reader.close()
