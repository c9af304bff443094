"""What the end of a rank's log says, whatever the framework."""

from __future__ import annotations

import re

TRACEBACK = "Traceback (most recent call last):"
LAST_LINES = 20


def only_lost_peers(log_tail: str, lost_peer: re.Pattern[str]) -> bool:
    """Whether every exception in the tail is one of a lost peer; without any, whether the last lines tell of one."""
    blocks = log_tail.split(TRACEBACK)[1:]
    if not blocks:
        blocks = ["\n".join(log_tail.strip().splitlines()[-LAST_LINES:])]
    return all(lost_peer.search(block) for block in blocks)
