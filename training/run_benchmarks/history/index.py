"""The index: an SQLite file in the user's cache, a row a run, and a row a round.

A result directory may be read-only, on a file system without locks, or shared by several users: nothing is ever written
there. An index of another form, or one that is damaged, is made anew: the folders are the truth.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from run_benchmarks.history.entries import Cells, entry_of
from run_benchmarks.history.places import Place, places_in
from run_benchmarks.own_folder import check_private
from run_benchmarks.plan.secrets import SecretsHere
from utils.errors import FlagPerfError

VERSION: Final = 7  # of the tables below and of what stands in them: an index with another one is made anew
BUSY_S = 30.0
REMEDY = "set XDG_CACHE_HOME to a folder of your own"
# The columns are the cells that `entry_of` gives, in their order.
_TABLES = """
CREATE TABLE runs (key PRIMARY KEY, path, mark, name, uid, state, started, exit_code, notes);
CREATE TABLE rounds (
    run REFERENCES runs ON DELETE CASCADE, "case", round, verdict, rules, kind, hosts, again, started, figures
);
CREATE INDEX rounds_of_run ON rounds (run);
CREATE VIEW listed AS
    SELECT runs.key, runs.name AS run, runs.uid, runs.state, runs.exit_code, runs.notes,
        rounds."case", rounds.round, rounds.verdict, rounds.rules, rounds.kind, rounds.hosts, rounds.again,
        rounds.figures, coalesce(rounds.started, runs.started) AS started
    FROM runs LEFT JOIN rounds ON rounds.run = runs.key;
"""


class Index:
    """The runs of one result directory. It may be used by several threads.

    secrets: what is hidden in what is judged now. file: where it lies; None where it is kept in memory.
    why_in_memory: what is wrong with the cache then.
    """

    def __init__(self, log_path: Path, secrets: SecretsHere, *, rebuild: bool = False) -> None:
        self.log_path, self.secrets = log_path.resolve(), secrets
        self._lock = threading.RLock()
        self.file: Path | None = None
        self.why_in_memory = ""
        self._connection = self._open()
        if rebuild:  # what others use meanwhile stays until it has been read anew
            with self.use() as connection, connection:
                connection.execute("UPDATE runs SET mark = ''")

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def refresh(self, on_work: Callable[[int], None] = lambda count: None) -> None:
        """Read the runs that are new or have changed since, and drop those that have gone.

        An index that was damaged or removed since it was opened is opened, or made, once more.

        Args:
            on_work: told how many have to be read, before they are.

        Raises:
            FlagPerfError: the result directory cannot be listed, or the index not be written.
        """
        places = {place.key: place for place in places_in(self.log_path)}
        try:
            self._take(places, on_work)
        except FlagPerfError as error:
            if not isinstance(error.__cause__, sqlite3.Error):
                raise
            with self._lock:
                self._connection.close()
                self._connection = self._open()
            self._take(places, on_work)

    def _take(self, places: Mapping[str, Place], on_work: Callable[[int], None]) -> None:
        with self.use() as connection:
            marks = dict(connection.execute("SELECT key, mark FROM runs").fetchall())
        changed = [place for key, place in places.items() if marks.get(key) != place.mark]
        if changed:
            on_work(len(changed))
        for place in changed:
            run, rounds = entry_of(place, self.secrets)  # without the lock: it may take a while
            with self.use() as connection, connection:
                connection.execute("DELETE FROM runs WHERE key = ?", (place.key,))
                _insert(connection, "runs", run)
                for each in rounds:
                    _insert(connection, "rounds", each)
        with self.use() as connection, connection:
            gone = [(key,) for key in marks.keys() - places]
            connection.executemany("DELETE FROM runs WHERE key = ?", gone)

    @contextmanager
    def use(self) -> Iterator[sqlite3.Connection]:
        """The connection, for this thread alone; what goes wrong with the file is said with what to do."""
        try:
            with self._lock:
                yield self._connection
        except sqlite3.Error as error:
            message = f"the index cannot be used: {error}"
            remedy = "try again; if that does not help, remove this file: it is made anew from the folders"
            raise FlagPerfError(message, where=str(self.file or ""), remedy=remedy) from error

    def path_of(self, key: str) -> Path | None:
        """The folder of the run with this key; None where the index has none: no path is made of what was asked for."""
        with self.use() as connection:
            row = connection.execute("SELECT path FROM runs WHERE key = ?", (key,)).fetchone()
        return Path(os.fsdecode(row[0])) if row else None

    def _open(self) -> sqlite3.Connection:
        """The index as it is; made anew where it is of another form, and in memory where no file can be had."""
        try:
            self.file = _cache_file(self.log_path)
            return _connected(self.file)
        except (OSError, RuntimeError, sqlite3.Error):  # RuntimeError: there is no home
            self.why_in_memory = "the cache (XDG_CACHE_HOME, else ~/.cache) cannot be written"
        except FlagPerfError as error:
            self.why_in_memory = str(error)
        self.file = None
        return _connect(":memory:")


def _connected(file: Path) -> sqlite3.Connection:
    try:
        return _connect(str(file))
    except sqlite3.OperationalError:  # it cannot be written
        raise
    except sqlite3.DatabaseError:
        _remove(file)
        return _connect(str(file))


def _connect(file: str) -> sqlite3.Connection:
    """An index in this file.

    Raises:
        sqlite3.OperationalError: it cannot be written.
        sqlite3.DatabaseError: it is none, one of another form, or a damaged one.
    """
    connection = sqlite3.connect(file, timeout=BUSY_S, check_same_thread=False)
    try:
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = OFF")  # after a crash of the machine it is made anew
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            _make_tables(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _make_tables(connection: sqlite3.Connection) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    there = {text for (text,) in connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
    wanted = [text.strip() for text in _TABLES.split(";") if text.strip()]
    if version == 0 and not there:
        for statement in wanted:
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {VERSION}")
    elif version != VERSION or there != set(wanted):
        raise sqlite3.DatabaseError(f"an index of another form, of version {version}")
    (state,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if state != "ok":
        raise sqlite3.DatabaseError(state)


def _cache_file(log_path: Path) -> Path:
    """Where the index of a result directory lies, in a folder for the user alone.

    Raises:
        OSError, RuntimeError: there can be none.
        FlagPerfError: it, or a folder on the way, may be somebody else's, who could forge what it says.
    """
    digest = hashlib.sha256(os.fsencode(log_path)).hexdigest()[:20]
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()).absolute()
    folder = base / "flagperf"
    file = folder / f"history-{digest}.sqlite"
    check_private(folder, REMEDY)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for each in (folder, file, _journal_of(file)):
        check_private(each, REMEDY)
    return file


def _journal_of(file: Path) -> Path:
    return file.with_name(f"{file.name}-journal")


def _remove(file: Path) -> None:
    for path in (file, _journal_of(file)):
        with suppress(OSError):
            path.unlink()


def _insert(connection: sqlite3.Connection, table: str, cells: Cells) -> None:
    marks = ", ".join(f":{name}" for name in cells)
    connection.execute(f"INSERT INTO {table} VALUES ({marks})", cells)  # noqa: S608 - names of this room
