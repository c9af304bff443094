"""Try again what a network may have spoilt, after longer and longer pauses."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from run_benchmarks.host_log import log_of_host
from run_benchmarks.transports.base import AuthenticationError, HostKeyError, TransportError
from utils.errors import FlagPerfError

T = TypeVar("T")
# Between attempts to transfer something large: a connection that is cut for a moment is back.
TRANSFER_PAUSES_S = (2.0, 10.0)
NEVER = (HostKeyError, AuthenticationError)


def is_passing(error: FlagPerfError) -> bool:
    """Whether contact to a host was lost, or not made, for no reason that only the user can mend."""
    return isinstance(error, TransportError) and not isinstance(error, NEVER)


async def with_backoff(
    work: Callable[[], Awaitable[T]],
    pauses_s: Sequence[float],
    may_pass: Callable[[FlagPerfError], bool],
    levels: tuple[str, str] = ("WARNING", "INFO"),
) -> T:
    """What `work` gives, which is done anew after each of the pauses as long as its error `may_pass`.

    A pause is a half shorter or longer by chance: what many hosts lost at once does not come back at once.

    Args:
        levels: of the log, for the first error and for those after it.
    """
    for number, pause in enumerate(pauses_s):
        try:
            return await work()
        except FlagPerfError as error:
            if not may_pass(error):
                raise
            text = f"{error.message}; trying again in about {pause:g} s"  # hosts of one text share a line
            log_of_host(levels[number > 0], error.where, text)
        await asyncio.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - no secret
    return await work()
