"""Whether kubectl failed by what the user asks for, or because no API server answered."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import TypeVar

from run_benchmarks.hosts.answers import answer_to
from run_benchmarks.hosts.base import AllocationError, NoAnswerError, NotGivenBackError
from run_benchmarks.transports.base import CommandError
from utils.errors import FlagPerfError

T = TypeVar("T")
# By kubectl's words: 400, 401, 403, 404 and 422, its own refusals, and what was waited for in vain.
_FINAL = re.compile(
    r"\((BadRequest|Unauthorized|Forbidden|NotFound|Invalid)\)|is invalid: |must be logged in|denied the request"
    r"|context .* does not exist|unknown (flag|command)|timed out waiting for the condition"
)


def no_answer(error: FlagPerfError) -> NoAnswerError:
    """What a request failed by. To ask again may help, unless it is plainly the user's."""
    failed = NoAnswerError(error.message, where=error.where, remedy=error.remedy)
    is_no_command = isinstance(error, CommandError) and error.completed.returncode == 127
    failed.may_pass = not (is_no_command or _FINAL.search(error.message))
    return failed


async def asked(question: Callable[[], Awaitable[T]]) -> T:
    """What the API server says, which is asked again for a while where it does not answer.

    Raises:
        NoAnswerError: it never did, or refused.
    """

    async def once() -> T:
        try:
            return await question()
        except (AllocationError, NotGivenBackError):
            raise
        except FlagPerfError as error:
            raise no_answer(error) from error

    return await answer_to(once)
