"""Whether kubectl failed by what the user asks for, or because no API server answered."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import TypeVar

from run_benchmarks.hosts.answers import answer_to
from run_benchmarks.hosts.base import AllocationError, NoAnswerError, NotGivenBackError
from run_benchmarks.transports.base import CommandError
from run_benchmarks.transports.kubectl.pods import LONGEST_TEXT
from utils.errors import FlagPerfError
from utils.text_files import shortened

T = TypeVar("T")
# By kubectl's words: 400, 401, 403, 404 and 422, its own refusals, and what was waited for in vain.
_FINAL = re.compile(
    r"\((BadRequest|Unauthorized|Forbidden|NotFound|Invalid)\)|is invalid: |must be logged in|denied the request"
    r"|context .* does not exist|unknown (flag|command)|timed out waiting for the condition"
)


def no_answer(error: FlagPerfError) -> NoAnswerError:
    """What a request failed by. To ask again may help, unless it is plainly the user's."""
    message, is_no_command = error.message, False
    if isinstance(error, CommandError):
        done = error.completed
        is_no_command = done.returncode == 127
        # beside an error kubectl prints an empty list
        message = f"{message.partition(chr(10))[0]}\n{shortened(done.stderr.strip(), LONGEST_TEXT)}"
    failed = NoAnswerError(message, where=error.where, remedy=error.remedy)
    failed.may_pass = not (is_no_command or _FINAL.search(message))
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
