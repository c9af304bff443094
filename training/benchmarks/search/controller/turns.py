"""One thread owns the state: what is asked of it meanwhile is done in one transaction, and answered when it is kept."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from benchmarks.search.controller.ledger import Ledger

T = TypeVar("T")
MOST_AT_ONCE = 256
_Turn = tuple[Callable[[], Any], "asyncio.Future[Any]"]


class Turns:
    """Runs actions on a ledger, one after the other, for an event loop.

    failed: resolved with the error where the state cannot be kept any more; nothing is answered from then on.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._loop = asyncio.get_running_loop()
        self._waiting: SimpleQueue[_Turn | None] = SimpleQueue()
        self.failed: asyncio.Future[None] = self._loop.create_future()
        self._thread = Thread(target=self._run, name="state", daemon=True)
        self._thread.start()

    async def take(self, action: Callable[[], T]) -> T:
        """What an action gives, once its changes are kept; what it raises, once they are undone."""
        answer: asyncio.Future[T] = self._loop.create_future()
        self._waiting.put((action, answer))
        return await answer

    def close(self) -> None:
        """End the thread, when all that was asked is done."""
        self._waiting.put(None)
        self._thread.join()

    def _run(self) -> None:
        while True:
            batch = self._next_batch()
            turns = [turn for turn in batch if turn]
            try:
                results = self._done(turns)
            except Exception as error:  # the disk is full, or broken: no promise can be kept
                self._call(self._fail, error)
                return
            self._call(self._answer, turns, results)
            if None in batch:
                return

    def _next_batch(self) -> list[_Turn | None]:
        """All that waits, or what comes next; None is the end."""
        batch = [self._waiting.get()]
        while len(batch) < MOST_AT_ONCE and not self._waiting.empty():
            batch.append(self._waiting.get())
        return batch

    def _done(self, turns: list[_Turn]) -> list[tuple[Any, BaseException | None]]:
        results: list[tuple[Any, BaseException | None]] = []
        with self._ledger.transaction():
            for action, _ in turns:
                try:
                    with self._ledger.part():
                        results.append((action(), None))
                except Exception as error:
                    if isinstance(error, sqlite3.DatabaseError) and not isinstance(
                        error, sqlite3.IntegrityError
                    ):
                        raise
                    results.append((None, error))
        return results

    def _answer(self, batch: list[_Turn], results: list[tuple[Any, BaseException | None]]) -> None:
        for (_, answer), (value, error) in zip(batch, results, strict=True):
            if answer.cancelled():
                continue
            if error:
                answer.set_exception(error)
            else:
                answer.set_result(value)

    def _fail(self, error: Exception) -> None:
        if not self.failed.done():
            self.failed.set_exception(error)

    def _call(self, action: Callable[..., None], *values: Any) -> None:
        """In the event loop's thread; nobody waits any more where that has ended."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(action, *values)
