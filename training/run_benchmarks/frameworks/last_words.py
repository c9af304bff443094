"""What the end of a rank's log says, whatever the framework."""

from __future__ import annotations

import re

TRACEBACK = "Traceback (most recent call last):"
LAST_LINES = 20
# Not the `C++ Traceback` that Paddle prints when a signal ends it: what was thrown stands above that.
_PYTHON_TRACEBACK = re.compile(rf"(?<!C\+\+ ){re.escape(TRACEBACK)}")


def only_lost_peers(log_tail: str, lost_peer: re.Pattern[str]) -> bool:
    """Whether every exception in the tail is one of a lost peer; without any, whether the last lines tell of one."""
    blocks = _PYTHON_TRACEBACK.split(log_tail)[1:]
    if not blocks:
        blocks = ["\n".join(log_tail.strip().splitlines()[-LAST_LINES:])]
    return all(lost_peer.search(block) for block in blocks)
