"""Plain data, as JSON holds it and a setting may be, that a stranger wrote."""

from __future__ import annotations

from typing import Any

# What nests deeper, or is a greater number, is no setting, and breaks what reads it.
DEEPEST, MOST_BITS = 50, 1000


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


def exact(value: Any, depth: int = 0) -> Any:
    """Plain data without subclasses of its types, which another process may not have; what is none is left as it is.

    Raises:
        ValueError: it is nothing that a setting could be.
    """
    if depth > DEEPEST:
        raise ValueError(f"nests deeper than {DEEPEST} levels")
    if isinstance(value, dict):
        return {exact(key, depth + 1): exact(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = [exact(item, depth + 1) for item in value]
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, str):
        return _encodable(str.__str__(value))
    if isinstance(value, float):
        return float.__float__(value)
    if not isinstance(value, int) or isinstance(value, bool):
        return value
    if value.bit_length() > MOST_BITS:
        raise ValueError(f"holds a number of more than {MOST_BITS} bits")
    return int.__int__(value)


def _encodable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("holds half a character (a surrogate)") from None
    return text


def in_order(value: Any) -> Any:
    """Plain data whose dicts are lists of pairs by the keys' names: equal ones have the same `repr`."""
    if isinstance(value, dict):
        return sorted((repr(key), in_order(item)) for key, item in value.items())
    return [in_order(item) for item in value] if isinstance(value, (list, tuple)) else value
