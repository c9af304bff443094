"""Numbers of figures: taken from what a case reports, divided by times, and shown."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from typing import Any

DIGITS = 3
MOST_DIGITS = 9  # what differs in later ones differs by rounding
# Nobody measures more, and sums, squares and cubes of such numbers can still be reckoned with.
LARGEST_MEASURED = 1e100
# Outside these a number is shown with an exponent.
SMALLEST, LARGEST = 1e-5, 1e15


def number_in(values: Mapping[str, Any], name: str) -> float | None:
    """The number that `values` have under `name`; anything else, as any case may write it, is None.

    None is larger than LARGEST_MEASURED.
    """
    value = values.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if is_measurable(value) else None


def is_measurable(number: float) -> bool:
    """Whether a number is finite, and not so large that nobody can have measured it."""
    return -LARGEST_MEASURED <= number <= LARGEST_MEASURED


def whole(text: str) -> int | None:
    """The whole number that a text is; None for anything else, and for one that nothing counted can be."""
    return int(text) if re.fullmatch(r"-?[0-9]{1,18}", text) else None


def finite(value: Any) -> Any:
    """Plain data as JSON holds it: None in the place of a number that is not finite."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return value


def rate(count: float | None, seconds: float | None) -> float | None:
    """`count` per second; None where either is not measured or no time has passed."""
    if count is None or not seconds or seconds <= 0:
        return None
    return count / seconds


def difference(whole: float, part: float) -> float:
    """`whole` - `part`; 0 where both are alike in MOST_DIGITS digits: what is left of such sums is their rounding."""
    return 0.0 if math.isclose(whole, part, rel_tol=10**-MOST_DIGITS) else whole - part


def counted(count: int, noun: str, plural: str = "") -> str:
    """`1 host`, `2 hosts`; `plural` where it is not the noun with an s."""
    return f"{count} {noun if count == 1 else plural or f'{noun}s'}"


def duration(seconds: float) -> str:
    """Seconds as `h:mm:ss` or `m:ss`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def digits_apart(values: Collection[float], digits: int = DIGITS) -> int:
    """So many significant digits, or as many more as show of values that differ that they do, if so many do."""
    enough = range(digits, MOST_DIGITS + 1)
    return next((n for n in enough if len({float(shown(v, n)) for v in values}) == len({*values})), digits)


def shown(value: float, digits: int = DIGITS) -> str:
    """`value` with so many significant digits, all those before the point, and an exponent only far from 1."""
    rounded = abs(float(f"{value:.{digits - 1}e}"))
    if rounded < LARGEST and value == round(value):
        return str(round(value))
    if not SMALLEST <= rounded < LARGEST:
        return f"{value:.{digits - 1}e}"
    return f"{value:.{max(0, digits - 1 - math.floor(math.log10(rounded)))}f}"
