"""How far the work is: a bar that is redrawn on a terminal, a line now and then in a log."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from tqdm import tqdm

TERMINAL_INTERVAL_S, LOG_INTERVAL_S = 0.2, 10.0


def progress(label: str, total: int, items: Iterable[Any] | None = None, **options: Any) -> Any:
    """`items` with a bar of `total` steps on stderr; without items the bar itself, to be updated."""
    interval = TERMINAL_INTERVAL_S if sys.stderr.isatty() else LOG_INTERVAL_S
    return tqdm(items, label, total, mininterval=interval, maxinterval=interval, **options)
