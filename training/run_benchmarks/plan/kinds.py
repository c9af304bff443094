"""What a setting may hold: each function here checks one value and returns it in its final type.

They raise UnfitError, which says why the value cannot be taken and what would be right.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from typing import Any, TypeVar

from run_benchmarks.plan.problems import UnfitError, listing
from utils.errors import nearest

T = TypeVar("T")
Kind = Callable[[Any], T]

_TYPE_NAMES: dict[type, str] = {
    type(None): "None",
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "text",
    list: "a list",
    tuple: "a tuple",
    dict: "a dict",
}


def type_name(value: Any) -> str:
    """What `value` is, in words for a user: `a list`, `text`."""
    return _TYPE_NAMES.get(type(value), f"a {type(value).__name__}")


def _expected(what: str, value: Any, example: str) -> UnfitError:
    return UnfitError(
        f"has the wrong type: it is {type_name(value)}, not {what}", f"write {what}, e.g. {example}"
    )


def text(example: str) -> Kind[str]:
    """Any text without control characters."""

    def check(value: Any) -> str:
        if not isinstance(value, str):
            raise _expected("text", value, repr(example))
        if re.search(r"[\x00-\x08\x0a-\x1f\x7f]", value):
            raise UnfitError("holds a line break or another control character", f"write e.g. {example!r}")
        return value.strip()

    return check


def flag(value: Any) -> bool:
    """True or False, and not a text that reads so: "False" counts as true in Python."""
    if not isinstance(value, bool):
        raise _expected("True or False (without quotes)", value, "True")
    return value


def whole(minimum: int = 1, maximum: int | None = None) -> Kind[int]:
    """A whole number within bounds."""

    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise _expected("a whole number (without quotes)", value, str(max(minimum, 1)))
        return _bounded(value, minimum, maximum)

    return check


def port(value: Any) -> int:
    """A TCP port, as a number or, as FlagPerf's own files write it, as text."""
    if isinstance(value, str) and re.fullmatch(r"\s*[+-]?\d+\s*", value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise _expected("a port number", value, '"22"')
    return _bounded(value, 1, 65535)


def number(minimum: float, *, above: bool = False) -> Kind[float]:
    """A finite number of at least `minimum`, or greater than it."""

    def check(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise _expected("a number (without quotes)", value, "10")
        if not minimum <= value < float("inf") or (above and value == minimum):
            wanted = f"greater than {minimum:g}" if above else f"of at least {minimum:g}"
            raise UnfitError("is out of range", f"write a number {wanted}")
        return float(value)

    return check


def _bounded(value: int, minimum: int, maximum: int | None) -> int:
    if value < minimum or (maximum is not None and value > maximum):
        span = f"from {minimum} to {maximum}" if maximum is not None else f"of at least {minimum}"
        raise UnfitError("is out of range", f"write a whole number {span}")
    return value


def one_of(*choices: str) -> Kind[str]:
    """One of a few words, in any case."""

    def check(value: Any) -> str:
        chosen = text(choices[0])(value).lower()
        if chosen not in choices:
            hint = nearest(chosen, choices)
            remedy = f"write one of {listing(choices)}" + (f"; {hint}" if hint else "")
            raise UnfitError("is not a known choice", remedy)
        return chosen

    return check


def texts(example: str) -> Kind[tuple[str, ...]]:
    """A list or a tuple of texts."""

    def check(value: Any) -> tuple[str, ...]:
        if not isinstance(value, (list, tuple)):
            raise _expected("a list of texts", value, f"[{example!r}]")
        return tuple(text(example)(item) for item in value)

    return check


def text_dict(value: Any) -> dict[str, str]:
    """A dict from names (as of environment variables) to texts."""
    if not isinstance(value, dict):
        raise _expected("a dict of texts", value, '{"BASE_IMAGE": "python:3.11-slim"}')
    for name, item in value.items():
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_]\w*", name):
            raise UnfitError(f"has the key {name!r}, which cannot be a variable's name", "use A-Z, 0-9 and _")
        text("python:3.11-slim")(item)
    return dict(value)


def environment_name(value: Any) -> str:
    """The name of an environment variable, or nothing."""
    name = text("CUDA_VISIBLE_DEVICES")(value)
    if name and not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise UnfitError("cannot be the name of an environment variable", "write e.g. 'CUDA_VISIBLE_DEVICES'")
    return name


def shell_words(value: Any) -> tuple[str, ...]:
    """Options for the container engine in one text, split as a shell would."""
    if not isinstance(value, str):
        raise _expected("text", value, '" --gpus all"')
    try:
        return tuple(shlex.split(value))
    except ValueError as error:
        raise UnfitError(
            f"cannot be split into options: {error}", "close the quotation marks in it"
        ) from None


def memory_size(value: Any) -> str:
    """A size as container engines read it: a whole number and b, k, m or g."""
    size = text("32G")(value)
    if not re.fullmatch(r"0*[1-9]\d*[bkmgBKMG]?", size):
        raise UnfitError("is not a size", 'write a whole number and a unit (b, k, m or g), e.g. "32G"')
    return size


def absolute_path(value: Any) -> str:
    """A path on the hosts or in the containers; the controller's `~` means nothing there."""
    path = text("/data/flagperf")(value)
    if not path.startswith("/"):
        why = "starts with ~, which hosts do not know" if path.startswith("~") else "is relative"
        raise UnfitError(f"{why}; a path on the hosts must be absolute", "write it in full, starting with /")
    return path if path == "/" else path.rstrip("/")


def path_name(value: Any) -> str:
    """A text that is one component of a path: a vendor, a model, a framework."""
    name = text("bert")(value)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]*", name):
        raise UnfitError("cannot be the name of a folder here", "use letters, digits, and . _ + - within")
    return name
