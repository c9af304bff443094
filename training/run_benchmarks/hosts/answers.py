"""A scheduler that does not answer says nothing of what it has granted: it is asked again for a while."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from run_benchmarks.hosts.base import NoAnswerError
from run_benchmarks.transports.backoff import with_backoff
from utils.errors import FlagPerfError

T = TypeVar("T")
# Within this time a cluster's controller that is started anew answers again. A last question may take a minute more.
PATIENCE_S = 75.0
PAUSES_S = (1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 20.0)


async def answer_to(question: Callable[[], Awaitable[T]]) -> T:
    """What a scheduler says, which is asked anew, for PATIENCE_S at most, as long as that may help.

    Raises:
        NoAnswerError: the last, where it never answered.
    """
    until = time.monotonic() + PATIENCE_S

    def may_pass(error: FlagPerfError) -> bool:
        return isinstance(error, NoAnswerError) and error.may_pass and time.monotonic() < until

    return await with_backoff(question, PAUSES_S, may_pass)
