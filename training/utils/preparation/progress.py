"""How far the work is: one line that is redrawn on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time

TERMINAL_INTERVAL_S, LOG_INTERVAL_S = 0.2, 10.0


class Progress:
    """Shows on stderr how much of a known amount is done, and about how long the rest will take."""

    def __init__(self, label: str, total: int) -> None:
        self.label, self.total, self.done = label, total, 0
        self._terminal = sys.stderr.isatty()
        self._interval = TERMINAL_INTERVAL_S if self._terminal else LOG_INTERVAL_S
        self._start = self._shown = time.monotonic()
        if self._terminal:
            self._print("")

    def advance(self) -> None:
        self.show(self.done + 1)

    def show(self, done: int) -> None:
        self.done = done
        if time.monotonic() - self._shown >= self._interval and done < self.total:
            self._print("" if self._terminal else "\n")

    def close(self) -> None:
        self._print("\n")

    def _print(self, end: str) -> None:
        self._shown = time.monotonic()
        seconds = self._shown - self._start
        line = f"{self.label}: {self.done}/{self.total}, {seconds:.0f} s"
        if 0 < self.done < self.total:
            line += f", about {seconds * (self.total - self.done) / self.done:.0f} s left"
        start = "\r\x1b[K" if self._terminal else ""
        print(f"{start}{line}", end=end, file=sys.stderr, flush=True)
