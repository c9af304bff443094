"""Records of a result folder as JSON, and back from files that may be torn, foreign or absurd."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from utils.errors import FlagPerfError
from utils.numbers import finite
from utils.text_files import opened, shortened

T = TypeVar("T")
LARGEST_BYTES = 64 * 2**20
MOST_VALUES = (
    4_000_000  # of ten thousand rounds there are half as many, and each takes up to 100 bytes of memory
)
LONGEST_PROBLEM = 400  # characters
_PIECE = 2**20  # characters that are cut at their quotes at once


@dataclass
class Allowance:
    """How many values are taken of strangers' JSON, whatever files and lines hold them."""

    values: int

    def take(self, text: str, where: str) -> None:
        """Take those of a text; FlagPerfError where it has more than are left."""
        count = values_in(text)
        if count > self.values:
            raise FlagPerfError(
                f"holds {count} values, more than the {self.values} that are taken", where=where
            )
        self.values -= count


def values_in(text: str) -> int:
    """How many values JSON holds at most: commas and brackets, but for those in its strings, which are one each."""
    bare = text.replace("\\\\", "").replace('\\"', "")
    count, is_string = 0, False
    for begin in range(0, len(bare), _PIECE):
        parts = bare[begin : begin + _PIECE].split('"')
        outside = "".join(parts[is_string::2])
        count += sum(map(outside.count, ",[{"))
        is_string ^= len(parts) % 2 == 0
    return count


def is_taken(text: str) -> bool:
    """Whether `read_object` takes a file with this text for what it measures, whatever JSON it holds."""
    return len(text) <= LARGEST_BYTES and values_in(text) <= MOST_VALUES


class Record:
    """A dataclass that stands in a file of the result folder."""

    def as_dict(self) -> dict[str, Any]:
        """The record as JSON holds it: what is not finite is null, and loses nothing else."""
        content: dict[str, Any] = _adapter(type(self)).dump_python(self, mode="json", by_alias=True)
        return {name: finite(value) for name, value in content.items()}


def read_text(path: Path, largest: int = LARGEST_BYTES, below: Path | None = None) -> str | None:
    """The text of a file of at most `largest` bytes; None where there is no file.

    Args:
        below: a folder that holds it: of the folders between the two none may be a link.

    Raises:
        FlagPerfError: it is no plain file, a link, too large, or cannot be read.
    """
    try:
        with opened(path, largest, below) as file:
            return file.read(largest).decode("utf-8", "replace")
    except FlagPerfError as error:
        if isinstance(error.__cause__, (FileNotFoundError, NotADirectoryError)):
            return None
        raise


def read_object(
    path: Path,
    largest: int = LARGEST_BYTES,
    below: Path | None = None,
    allowance: Allowance | None = None,
) -> Mapping[str, Any] | None:
    """The JSON object in a file, a number that is not finite being null; None where there is no file.

    Args:
        below: as of `read_text`. allowance: as of `object_in`.

    Raises:
        FlagPerfError: the file holds none, or cannot be read.
    """
    text = read_text(path, largest, below)
    return None if text is None else object_in(text, str(path), allowance)


def object_in(text: str, where: str, allowance: Allowance | None = None) -> Mapping[str, Any]:
    """The JSON object in a text; FlagPerfError where there is none.

    Args:
        allowance: what is taken of this text and of others together.
    """
    Allowance(MOST_VALUES).take(text, where)
    if allowance:
        allowance.take(text, where)
    try:
        value = _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise FlagPerfError(f"is not JSON, or only a part: {error}", where=where) from error
    if not isinstance(value, dict):
        raise FlagPerfError("holds no JSON object", where=where)
    return value


def parsed(kind: type[T], content: Mapping[str, Any], where: str) -> T:
    """The record of type `kind` that plain data is; what a record does not know is passed over.

    Raises:
        FlagPerfError: something of it is missing or of another type.
    """
    try:
        # half a surrogate pair, which JSON can write and no terminal can show, becomes a question mark
        text = json.dumps(content, ensure_ascii=False).encode(errors="replace")
        record: T = _adapter(kind).validate_json(text, strict=True)
        return record
    except ValidationError as error:
        raise FlagPerfError(first_problem(error), where=where) from error
    except (ValueError, TypeError, RecursionError) as error:
        raise FlagPerfError(f"is no plain data: {error}", where=where) from error


def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    """Made once a type: making it takes a hundred times as long as reading a record."""
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]


def first_problem(error: ValidationError) -> str:
    """The first of what is wrong with plain data: where in it, and what."""
    first = error.errors()[0]
    return shortened(f"{'.'.join(map(str, first['loc'])) or 'it'}: {first['msg']}", LONGEST_PROBLEM)


def _finite(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


_ADAPTERS: dict[type[Any], TypeAdapter[Any]] = {}
# made once: a journal has many lines
_DECODER = json.JSONDecoder(parse_constant=lambda _: None, parse_float=_finite)


def flattened(value: Any, name: str = "", *, is_numbered: bool) -> Iterator[tuple[str, str]]:
    """Plain data of any depth as dotted names and texts; a list of single values is one, and what is empty is left out.

    Args:
        is_numbered: records of a list have their places in their names; else all have the same names.
    """
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from flattened(item, f"{name}.{key}" if name else str(key), is_numbered=is_numbered)
    elif isinstance(value, (list, tuple)) and any(isinstance(item, (Mapping, list, tuple)) for item in value):
        for place, item in enumerate(value):
            yield from flattened(item, f"{name}[{place}]" if is_numbered else name, is_numbered=is_numbered)
    elif value not in (None, "", [], ()):
        yield name, ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
