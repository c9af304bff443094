"""Read configuration files: Python files whose names are settings."""

from __future__ import annotations

import re
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from utils.errors import FlagPerfError, raised
from utils.loading import code_name, load_module
from utils.text_files import shortened

LONGEST_CODE = 200  # characters of a line that a message shows


def load_constants(path: Path) -> dict[str, Any]:
    """The names that the Python file `path` sets to plain data, in the order in which they stand.

    Plain data is None, bool, int, float, str and lists, tuples and dicts of these; functions,
    modules and names with a leading underscore are the file's own business.

    Raises:
        FlagPerfError: the file is missing or fails; the line that failed is named.
    """
    return constants_of(load_config(path))


def load_config(path: Path, provided: Mapping[str, Any] | None = None) -> ModuleType:
    """The configuration file `path`, executed; raises as `load_constants` does.

    Args:
        provided: names that its code has without importing them.
    """
    try:
        return load_module(path, f"flagperf_config_{abs(hash(path))}", provided)
    except FlagPerfError:
        raise
    except (Exception, SystemExit) as error:  # sys.exit() in a file must not end what reads it
        raise failure_in(path, error) from error


def constants_of(module: ModuleType) -> dict[str, Any]:
    """What a configuration file sets to plain data."""
    return {name: value for name, value in vars(module).items() if _is_setting(name, value)}


def failure_in(path: Path, error: BaseException) -> FlagPerfError:
    """What `error`, which the Python file `path` raised when it was parsed or executed, is to its author."""
    if isinstance(error, SyntaxError):
        shown = (error.text or "").strip()
        file = path if error.filename in (None, code_name(path)) else error.filename
        return FlagPerfError(
            f"syntax error: {error.msg}" + (f": {shown}" if shown else ""),
            where=f"{file}:{error.lineno}" if error.lineno else str(path),
            remedy=f"correct {'this line' if error.lineno else 'it'}; the file is Python",
        )
    line, code = _line_of(path, error)
    return FlagPerfError(
        raised(error) + (f": {code}" if code else ""),
        where=f"{path}:{line}" if line else str(path),
        remedy=f"correct {'this line' if line else 'it'}; the file is executed as Python",
    )


def config_name(chip: str, nodes: int, ranks: int) -> str:
    """The name of a chip's configuration for so many nodes, of so many ranks each: `config_A100x1x8`."""
    return f"config_{chip}x{nodes}x{ranks}"


def parts_of_config(name: str) -> tuple[str, int, int] | None:
    """Chip (which may have an x in it: `Max1550`), nodes and ranks of a node; None for a name of another form."""
    match = re.fullmatch(r"config_([\w.+-]+)x([1-9][0-9]{0,5})x([1-9][0-9]{0,5})", name)
    return (match[1], int(match[2]), int(match[3])) if match else None


def _is_setting(name: str, value: Any) -> bool:
    return not name.startswith("_") and is_plain(value)


def is_plain(value: Any) -> bool:
    """Whether `value` is plain data."""
    if isinstance(value, (list, tuple)):
        return all(is_plain(item) for item in value)
    if isinstance(value, dict):
        return all(is_plain(key) and is_plain(item) for key, item in value.items())
    return value is None or isinstance(value, (bool, int, float, str))


def _line_of(path: Path, error: BaseException) -> tuple[int | None, str]:
    """The number of the line of the file that failed, and that line; None and an empty one where it is in no line."""
    name = code_name(path)
    lines = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == name]
    if not lines:
        return None, ""
    return lines[-1].lineno, shortened(lines[-1].line or "", LONGEST_CODE)
