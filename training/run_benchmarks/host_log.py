"""What is said of hosts while they are heard: those of which the same is said within a moment share a line of the log.

Where a switch fails, hundreds lose contact at once, and a line for each would bury what else there is to be read.
"""

from __future__ import annotations

import asyncio

from run_benchmarks.plan.host_ranges import alike
from run_benchmarks.run_log import LOGGER
from utils.text_files import shortened_to_words

MOMENT_S = 0.5
LONGEST_SAID = 2**10  # characters: what a host prints stands in some of it, and may come again and again
_waiting: dict[str, dict[str, str]] = {}  # level -> host -> what is said of it
_timed_by: asyncio.AbstractEventLoop | None = (
    None  # which logs that when the moment is over, unless it has ended
)


def log_of_host(level: str, host: str, text: str) -> None:
    """Log `host: text` a moment later; `level` is a name of loguru's. Needs a running event loop."""
    global _timed_by
    text = shortened_to_words(text, LONGEST_SAID)
    if _waiting.get(level, {}).get(host, text) != text:
        flush()
    loop = asyncio.get_running_loop()
    if not _waiting or _timed_by is not loop:
        loop.call_later(MOMENT_S, flush)
        _timed_by = loop
    _waiting.setdefault(level, {})[host] = text


def flush() -> None:
    """Log what waits: also to be called where an event loop ends."""
    waiting = {level: dict(texts) for level, texts in _waiting.items()}
    _waiting.clear()
    for level, texts in waiting.items():
        for hosts, text in alike(texts):
            LOGGER.log(level, f"{hosts}: {text}")
