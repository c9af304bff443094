"""Run tasks on several processes, in order, with progress; die together, leave no process behind."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import TypeVar

from benchmarks.bert.prepare.progress import Progress
from utils.errors import FlagPerfError

Item = TypeVar("Item")
Result = TypeVar("Result")


class Workers:
    """`count` processes; with one, tasks run in this process."""

    def __init__(self, count: int, pool: ProcessPoolExecutor | None) -> None:
        self.count = count
        self._pool = pool

    @classmethod
    @contextmanager
    def started(cls, count: int) -> Iterator[Workers]:
        if count == 1:
            yield cls(1, None)
            return
        # "spawn": the tokenizer and HDF5 libraries keep threads and state that do not survive a fork.
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(count, mp_context=context, initializer=_begin_worker) as pool:
            try:
                yield cls(count, pool)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def map(self, label: str, task: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """`task` of each item, in the items' order; the first failure ends the rest."""
        progress = Progress(label, len(items))
        results = []
        try:
            for result in self._results(task, items):
                results.append(result)
                progress.advance()
        except BrokenProcessPool:
            raise FlagPerfError(
                f"a worker died while at work on: {label}",
                where="workers",
                remedy="most often memory ran out: give fewer --workers; the same command goes on from here",
            ) from None
        finally:
            progress.close()
        return results

    def _results(self, task: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        if self._pool is None:
            yield from map(task, items)
            return
        futures: list[Future[Result]] = [self._pool.submit(task, item) for item in items]
        for future in futures:
            yield future.result()


def _begin_worker() -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # one process a core is parallel enough
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends a worker at once and without a traceback
    threading.Thread(target=_die_with_parent, daemon=True).start()


def _die_with_parent() -> None:
    """A pool's workers outlive a parent that is killed: they wait for work that never comes."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)
