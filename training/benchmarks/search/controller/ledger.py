"""What a search has come to, kept before anybody is told of it: rows of the state, and events."""

from __future__ import annotations

import sqlite3
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

import msgspec

from benchmarks.search.controller.clock import SearchClock
from utils.events import format_line
from utils.search.account import Account
from utils.search.events import MOST_BYTES, MOST_EVENTS, OF_WORKERS, RECORDS, SearchRecord, event_of


class Ledger:
    """The open state, for one thread. `account` is what all events come to.

    spent: of each worker, what its events are of all that a log may have.

    Args:
        connection: of `open_database`. out: where events are printed once they are kept.
    """

    def __init__(self, connection: sqlite3.Connection, out: TextIO = sys.stdout) -> None:
        self._connection, self._out = connection, out
        self._lines: list[str] = []
        self._told: list[tuple[SearchRecord, float]] = []
        self.spent: defaultdict[int, float] = defaultdict(float)
        self.clock, self.now_s = SearchClock.begin(), 0.0
        self.account = Account()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All that is done in it is kept, or nothing; then its events are printed."""
        self._lines.clear()
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        self._out.write("".join(self._lines))
        self._out.flush()

    @contextmanager
    def part(self) -> Iterator[None]:
        """A part of a transaction: of one that fails nothing is kept, and the rest is none the worse."""
        self.now_s, lines = self.clock.now(), len(self._lines)
        self._told = []
        self._connection.execute("SAVEPOINT part")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK TO part")
            del self._lines[lines:]
            raise
        finally:
            self._connection.execute("RELEASE part")
        for record, share in self._told:
            self.account.take(record)
            if isinstance(record, OF_WORKERS):
                self.spent[record.worker] += share

    def execute(self, statement: str, *values: Any) -> int:
        """Change rows; how many were."""
        return self._connection.execute(statement, values).rowcount

    def rows(self, query: str, *values: Any) -> Sequence[sqlite3.Row]:
        """What a query gives."""
        return self._connection.execute(query, values).fetchall()

    def row(self, query: str, *values: Any) -> sqlite3.Row | None:
        """The first row that a query gives; None where it gives none."""
        row: sqlite3.Row | None = self._connection.execute(query, values).fetchone()
        return row

    def value(self, query: str, *values: Any) -> Any:
        """The only value that a query gives."""
        return self._connection.execute(query, values).fetchone()[0]

    def count_live(self) -> int:
        """Workers that are there."""
        return int(self.value("SELECT count(*) FROM sessions WHERE state = 'live'"))

    def tell(self, record: SearchRecord, *, keep: bool = True) -> None:
        """An event of now. Not kept are SEARCH_START, which each start has of its own, and an end that is not final."""
        time_ms = int(time.time() * 1000)
        if keep:
            value = msgspec.json.encode(record).decode()
            self.execute("INSERT INTO events VALUES (NULL, ?, ?, ?)", record.event.value, time_ms, value)
        self._print(record, time_ms)

    def tell_again(self) -> None:
        """All events that were kept, for a log that begins with this start."""
        for row in self.rows("SELECT name, time_ms, value FROM events ORDER BY sequence"):
            record = msgspec.json.decode(row["value"], type=RECORDS[row["name"]])
            self._print(record, row["time_ms"])

    def print_line(self, line: str) -> None:
        """A line for the log that is no event of the search, behind those of this transaction."""
        self._lines.append(line + "\n")

    def _print(self, record: SearchRecord, time_ms: int) -> None:
        line = format_line(event_of(record, time_ms)) + "\n"
        self._lines.append(line)
        self._told.append((record, max(1 / MOST_EVENTS, len(line) / MOST_BYTES)))

    def close(self) -> None:
        """Close the file: what its log holds goes into it."""
        self._connection.close()
