"""Try again what a network may have spoilt, after longer and longer pauses."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from run_benchmarks.run_log import LOGGER
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
    work: Callable[[], Awaitable[T]], pauses_s: Sequence[float], may_pass: Callable[[FlagPerfError], bool]
) -> T:
    """What `work` gives, which is done anew after each of the pauses as long as its error `may_pass`.

    A pause is a half shorter or longer by chance: what many hosts lost at once does not come back at once.
    """
    for pause in (each * random.uniform(0.5, 1.5) for each in pauses_s):  # noqa: S311 - no secret
        try:
            return await work()
        except FlagPerfError as error:
            if not may_pass(error):
                raise
            LOGGER.warning(f"{error.where}: {error.message}; trying again in {pause:.1f} s")
        await asyncio.sleep(pause)
    return await work()
