"""Run tasks on several processes, in order, with progress; the first failure ends them all."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import TypeVar

from benchmarks.common.preparation.bars import progress
from benchmarks.common.preparation.partial import ResumableError

Item = TypeVar("Item")
Result = TypeVar("Result")


class Workers:
    """Processes that run picklable tasks. Made by `started`."""

    def __init__(self, pool: ProcessPoolExecutor | None) -> None:
        self._pool = pool

    @classmethod
    @contextmanager
    def started(cls, count: int) -> Iterator[Workers]:
        """`count` processes; none outlives this block or this process. One: tasks run in this process."""
        if count == 1:
            yield cls(None)
            return
        # "spawn": tokenizer and HDF5 libraries keep threads and state that do not survive a fork.
        context = multiprocessing.get_context("spawn")
        lifeline, held = context.Pipe(duplex=False)
        with lifeline, ProcessPoolExecutor(count, context, _begin_worker, (lifeline,)) as pool:
            try:
                yield cls(pool)
            except BaseException:
                held.close()  # ends the workers at once, in the middle of their work
                raise
        held.close()

    def map(self, label: str, task: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """`task` of each item, in the items' order. `label` says on the terminal what is being done."""
        try:
            return list(progress(label, len(items), self._results(task, items)))
        except BrokenProcessPool:
            raise ResumableError(
                f"a worker process died during: {label}",
                where="workers",
                remedy="most often memory ran out: give fewer --workers; the same command goes on from here",
            ) from None

    def _results(self, task: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        if self._pool is None:
            yield from map(task, items)
            return
        futures: list[Future[Result]] = [self._pool.submit(task, item) for item in items]
        for future in futures:
            yield future.result()


def _begin_worker(lifeline: Connection) -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # a process a core is parallel enough
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent, and the lifeline the workers
    threading.Thread(target=_die_with_parent, args=(lifeline,), daemon=True).start()


def _die_with_parent(lifeline: Connection) -> None:
    """A pool's own workers outlive a parent that is killed: they wait for work that never comes."""
    lifeline.poll(None)  # returns when the other end is closed
    os._exit(1)
