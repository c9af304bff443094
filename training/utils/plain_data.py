"""Plain data, as JSON holds it, that a stranger wrote."""

from __future__ import annotations

from typing import Any


def is_small(content: Any, most: int, deepest: int) -> bool:
    """Whether plain data hold at most so many values, none deeper than so: both cost whoever walks or writes them."""
    level, count = [content], 0
    for _ in range(deepest + 1):
        inner = [each for each in level if isinstance(each, (list, dict))]
        level = [item for each in inner for item in (each.values() if isinstance(each, dict) else each)]
        count += len(level)
        if not level or count > most:
            break
    return not level and count <= most
