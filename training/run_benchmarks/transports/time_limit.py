"""A limit of time for what is awaited, which loses no cancellation.

`asyncio.wait_for` of Python before 3.12 gives the result and forgets the cancellation where both come in one turn of
the loop: whoever waits for the cancelled then waits for ever (https://github.com/python/cpython/issues/86296).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


async def within(work: Awaitable[T], limit_s: float | None) -> T:
    """The result of `work`, which has `limit_s` seconds (None: all that it needs) and is cancelled then.

    It has ended when this returns. Who is cancelled while waiting here is cancelled, whatever became of `work`.

    Raises:
        asyncio.TimeoutError: it was not done in time.
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=limit_s)
    except asyncio.CancelledError:
        await _end(task)
        raise
    if task.done():
        return task.result()
    await _end(task)
    if task.cancelled():
        raise asyncio.TimeoutError
    return task.result()  # in the last moment after all, or an error that its end has shown


async def _end(task: asyncio.Future[T]) -> None:
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()  # seen: else the loop reports it as one that nobody has heard of
