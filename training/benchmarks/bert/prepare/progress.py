"""How far the work is: one line that is redrawn on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time

TERMINAL_INTERVAL_S, LOG_INTERVAL_S = 0.2, 10.0


class Progress:
    """Counts tasks of a known number and shows them on stderr, with the time left."""

    def __init__(self, label: str, total: int) -> None:
        self.label, self.total, self.done = label, total, 0
        self._start = self._shown = time.monotonic()
        self._terminal = sys.stderr.isatty()
        self._show()

    def advance(self) -> None:
        self.done += 1
        interval = TERMINAL_INTERVAL_S if self._terminal else LOG_INTERVAL_S
        if time.monotonic() - self._shown >= interval and self.done < self.total:
            self._show()

    def close(self) -> None:
        self._show(end="\n")

    def _show(self, end: str = "") -> None:
        self._shown = time.monotonic()
        seconds = self._shown - self._start
        line = f"{self.label}: {self.done}/{self.total}, {seconds:.0f} s"
        if 0 < self.done < self.total:
            line += f", about {seconds * (self.total - self.done) / self.done:.0f} s left"
        if self._terminal:
            print(f"\r\x1b[K{line}", end=end, file=sys.stderr, flush=True)
        elif self.done:
            print(line, file=sys.stderr, flush=True)
