"""A terminal: a command runs on a real pty, and what it writes is put on the screen of a terminal emulator."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping, Sequence

import pexpect
import pyte

PATIENCE_S = 120.0


class Terminal:
    """A command on a terminal of its own, at first of `columns` x `lines`. What scrolls off the screen is kept."""

    def __init__(
        self, argv: Sequence[str], environment: Mapping[str, str], columns: int = 80, lines: int = 24
    ) -> None:
        self.screen = pyte.HistoryScreen(columns, lines, history=100_000, ratio=1e-9)
        self._stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.child = pexpect.spawn(
            argv[0], list(argv[1:]), env=dict(environment), dimensions=(lines, columns)
        )
        self.child.delaybeforesend = None

    @property
    def lines(self) -> list[str]:
        """The screen, without the blanks at the ends of lines and below the last one."""
        lines = [line.rstrip() for line in self.screen.display]
        return lines[: max((number for number, line in enumerate(lines, 1) if line), default=0)]

    @property
    def text(self) -> str:
        """The screen as text."""
        return "\n".join(self.lines)

    @property
    def everything(self) -> str:
        """All that is to be seen when one scrolls back."""
        gone = ["".join(line[x].data for x in sorted(line)).rstrip() for line in self.screen.history.top]
        return "\n".join([*gone, *self.lines])

    def wait_for(self, *texts: str) -> str:
        """Wait until all of this is on the screen; the screen."""
        end = time.monotonic() + PATIENCE_S
        while not all(text in self.text for text in texts):
            assert time.monotonic() < end and self.read(), f"{texts} is not on the screen:\n{self.everything}"
        return self.text

    def wait(self) -> int:
        """Wait for the command's end; its exit code."""
        end = time.monotonic() + PATIENCE_S
        while self.read():
            assert time.monotonic() < end, f"it does not end:\n{self.everything}"
        self.child.close()
        return self.child.exitstatus if self.child.exitstatus is not None else -self.child.signalstatus

    def resize(self, columns: int, lines: int) -> None:
        """Give the terminal another size."""
        self.screen.resize(lines, columns)
        self.child.setwinsize(lines, columns)

    def press_ctrl_c(self) -> None:
        """Press Ctrl-C."""
        self.child.sendintr()

    def close(self) -> None:
        """Hang up, and wait until all that the command started has ended in order."""
        if self.child.isalive():
            os.kill(self.child.pid, signal.SIGTERM)
            self.wait()

    def read(self) -> bool:
        """Take in what was written meanwhile; False at the end."""
        try:
            data = self.child.read_nonblocking(65536, timeout=0.2)
        except pexpect.TIMEOUT:
            return True
        except pexpect.EOF:
            return False
        self.raw += data
        self._stream.feed(data)
        return True
