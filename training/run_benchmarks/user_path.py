"""A path as a user writes it, in a setting or on the command line."""

from __future__ import annotations

from pathlib import Path

from utils.errors import FlagPerfError


def user_path(written: str | Path, below: Path = Path()) -> Path:
    """The path that a user wrote, with his home for `~`; a relative one is below a folder. It need not be there.

    Raises:
        FlagPerfError: no file can have it, or this user may not reach it.
    """
    remedy = "correct the path, or give one that this user may reach"
    try:
        path = below / Path(written).expanduser()
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return path
    except RuntimeError as error:
        remedy = "write the path from the root"
        raise FlagPerfError(
            "begins with a home that is not known", where=str(written), remedy=remedy
        ) from error
    except ValueError as error:
        raise FlagPerfError("has a character that no path has", where=repr(written), remedy=remedy) from error
    except OSError as error:
        raise FlagPerfError(f"cannot be reached: {error.strerror}", where=str(path), remedy=remedy) from error
    return path
