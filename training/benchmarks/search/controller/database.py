"""The state's file: made, or opened again when it is seen to be one, whole, and nobody else's."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import stat
from pathlib import Path
from urllib.parse import quote

from utils.errors import FlagPerfError
from utils.search.events import STATE_FILE as FILE

LARGEST = 2**36  # bytes
LONGEST_TEXT = 2**20  # characters of one value
_SCHEMA = Path(__file__).with_name("state.sql")
_STORED_AS = {"INTEGER": ("integer",), "REAL": ("real",), "TEXT": ("text",)}
REMEDY = "begin a new search, or bring this file back from a copy"


class StateError(FlagPerfError):
    """The state cannot be used."""


def open_database(folder: Path, earlier: Path | None = None) -> sqlite3.Connection:
    """The state in a folder, for this process alone; made where there is none.

    Args:
        earlier: a folder with the state that the search goes on with, where `folder` has none yet; it is copied.

    Raises:
        StateError: it cannot be written, is used by another controller, is damaged, or is no state of a search.
    """
    path = folder / FILE
    try:
        if earlier and not path.exists():
            _copy(earlier, folder)
        _refuse_strange(path)
        connection = sqlite3.connect(
            f"file:{quote(str(path))}?mode=rwc",
            uri=True,
            isolation_level=None,
            timeout=0,
            check_same_thread=False,
        )
    except (OSError, sqlite3.Error) as error:
        raise _unusable(path, error) from error
    try:
        _prepare(connection, path)
    except sqlite3.Error as error:
        connection.close()
        raise _unusable(path, error) from error
    except StateError:
        connection.close()
        raise
    return connection


def _unusable(path: Path, error: OSError | sqlite3.Error) -> StateError:
    if isinstance(error, OSError):
        is_link = error.errno == errno.ELOOP
        return StateError(
            "is a link, which is not followed" if is_link else f"{error.strerror}", where=str(path)
        )
    if "locked" in str(error):
        return StateError("another controller uses it", where=str(path), remedy="stop that one first")
    is_limit = "unable to open" in str(error)
    remedy = "raise the limit of open files, see that the folder can be written" if is_limit else REMEDY
    return StateError(f"the state of the search cannot be used: {error}", where=str(path), remedy=remedy)


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Settings of the connection, tables where there are none, and what must hold of them."""
    connection.row_factory = sqlite3.Row
    for setting in (
        "trusted_schema = OFF",
        "cell_size_check = ON",
        "locking_mode = EXCLUSIVE",
        "journal_mode = WAL",
        "synchronous = FULL",  # what a worker was told outlives a crash of the machine too
    ):
        connection.execute(f"PRAGMA {setting}")
    connection.execute("BEGIN IMMEDIATE")
    if not _schema_of(connection):
        for statement in _statements():
            connection.execute(statement)
    connection.execute("COMMIT")
    (state,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    expected = sqlite3.connect(":memory:")
    for statement in _statements():
        expected.execute(statement)
    if state != "ok" or _schema_of(connection) != _schema_of(expected):
        message = (
            f"is damaged: {state}" if state != "ok" else "is no state of a search, or of another version"
        )
        raise StateError(message, where=str(path), remedy=REMEDY)
    _refuse_strange_values(connection, path)


def _statements() -> list[str]:
    return [text for text in _SCHEMA.read_text(encoding="utf-8").split(";\n") if "CREATE" in text]


def _schema_of(connection: sqlite3.Connection) -> list[tuple[str, ...]]:
    rows = connection.execute("SELECT type, name, coalesce(sql, '') FROM sqlite_master ORDER BY 1, 2")
    return [tuple(row) for row in rows]


def _refuse_strange_values(connection: sqlite3.Connection, path: Path) -> None:
    """SQLite keeps a value of any type in any column: those that others wrote are looked at before they are used."""
    tables = [name for kind, name, _ in _schema_of(connection) if kind == "table"]
    for table in tables:
        for _, column, declared, is_given, _, is_key in connection.execute(
            f"PRAGMA table_info({table})"
        ).fetchall():
            allowed = _STORED_AS[declared] + (() if is_given or is_key else ("null",))
            marks = ", ".join("?" * len(allowed))
            strange = f"typeof({column}) NOT IN ({marks}) OR length({column}) > {LONGEST_TEXT}"
            query = f"SELECT count(*) FROM {table} WHERE {strange}"  # noqa: S608 - names of our own schema
            (count,) = connection.execute(query, allowed).fetchone()
            if count:
                message = f"{count} values of {table}.{column} are nothing that a controller writes"
                raise StateError(message, where=str(path), remedy=REMEDY)


def _refuse_strange(path: Path, *, make: bool = True) -> None:
    """No link is opened, nothing that has another name elsewhere, and nothing of another user."""
    for each in (path, *_beside(path)):
        try:
            about = each.lstat()
        except FileNotFoundError:
            continue
        if stat.S_ISLNK(about.st_mode):
            raise StateError("is a link, which is not followed", where=str(each), remedy="remove it")
        if not stat.S_ISREG(about.st_mode) or about.st_nlink > 1 or about.st_uid != os.geteuid():
            raise StateError("is no file of this user alone", where=str(each), remedy="remove it")
        if about.st_size > LARGEST:
            raise StateError(f"has more than {LARGEST} bytes", where=str(each), remedy=REMEDY)
    if make and not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600))


def _beside(path: Path) -> list[Path]:
    return [path.with_name(path.name + end) for end in ("-wal", "-shm", "-journal")]


def _copy(earlier: Path, folder: Path) -> None:
    """The earlier round's state, which no controller uses any more; its log first: without it the file is older."""
    for name in (f"{FILE}-wal", FILE):
        _refuse_strange(earlier / name, make=False)
        if (earlier / name).exists():
            shutil.copyfile(earlier / name, folder / f"{name}.part")
            (folder / f"{name}.part").replace(folder / name)
