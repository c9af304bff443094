"""What a preparation says where a package is not installed that it needs."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from utils.errors import FlagPerfError

_OWN = ("benchmarks", "utils")


@contextmanager
def packages_beside(command: str) -> Iterator[None]:
    """The imports of a preparation, whose packages stand in `requirements.txt` beside `command`, its file.

    Raises:
        SystemExit: with exit code 1, where one is not installed; its text says which, and what to do.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] in _OWN:
            raise
        packages = str(Path(command).resolve().with_name("requirements.txt"))
        install = shlex.join([sys.executable, "-m", "pip", "install", "-r", packages])
        missing = FlagPerfError(
            f"{error.name} is not installed for {sys.executable}",
            where=packages,
            remedy=f"{install} (a virtual environment of its own will do)",
        )
        raise SystemExit(str(missing)) from None
