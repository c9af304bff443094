"""The end of a log: what of it is read, which line of it says what went wrong, and what of it is shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from run_benchmarks.frameworks.base import Framework
from run_benchmarks.names import home_of
from run_benchmarks.plan.redact import redact_tokens
from run_benchmarks.results.remedies import ARROW
from run_benchmarks.results.symptoms import error_line_in, is_error, own_lines
from utils.errors import FlagPerfError
from utils.events import PREFIX
from utils.records import Failure, FailureClass
from utils.text_files import last_lines_of, shortened

EVIDENCE_LINES = 30
# So many of these are shown at least, beside events, and all from where an error begins: before it is only progress.
SHOWN_LINES = 8
TRACEBACK = (
    "Traceback (most recent call last)",
    '  File "',
)  # or a line of one that is longer than the evidence
# Of a log so much is looked at: a launcher's report of its ranks stands at its end.
MOST_LINES = 2_000
LONGEST_LINE = 2**13  # characters
LONGEST_CAUSE = 300  # characters
# A deadline or a removal: it had not gone wrong yet; a hang: its evidence is where ranks were; the end of a scheduler's
# job: what of its records is worth a word is in the message.
_SAID_NOTHING = (
    FailureClass.DEADLINE,
    FailureClass.TASK_REMOVED,
    FailureClass.COLLECTIVE_HANG,
    FailureClass.ALLOCATION_CANCELLED,
    FailureClass.ALLOCATION_PREEMPTED,
    FailureClass.ALLOCATION_TIME_LIMIT,
    FailureClass.ALLOCATION_OUT_OF_MEMORY,
    FailureClass.ALLOCATION_ENDED,
    FailureClass.NODE_FAILED,
)
# Who is killed has no last word: the last line is only where it stood.
_KILLED = (FailureClass.RANK_KILLED, FailureClass.HOST_OUT_OF_MEMORY, FailureClass.CONTAINER_OUT_OF_MEMORY)
# The end of a rank's log may be its last word, as `sys.exit("...")` prints it, or progress.
LAST_LINE = "its last line: "


def cause_in(failure: Failure) -> str:
    """The line of the evidence that says what went wrong; empty where none does, or the message says it."""
    if failure.failure_class in _SAID_NOTHING:
        return ""
    cause = error_line_in(failure.evidence)
    if not cause and failure.failure_class not in _KILLED:
        own = own_lines(failure.evidence)
        words = [line for line in own if any(map(str.isalnum, line)) and not line.startswith(ARROW)]
        cause = next(reversed(words), "")
        if cause and failure.failure_class is FailureClass.RANK_FAILED:
            cause = f"{LAST_LINE}{cause}"
    cause = cause[:LONGEST_CAUSE]
    return "" if cause in failure.message else cause


def to_the_point(words: str) -> str:
    """The last lines of a log without the progress before what went wrong."""
    lines = words.splitlines()
    begins = [
        number
        for number, line in enumerate(lines)
        if any(sign in line for sign in TRACEBACK) or (PREFIX not in line and is_error(line))
    ]
    words_at = [number for number, line in enumerate(lines) if PREFIX not in line]
    last = words_at[-SHOWN_LINES:] or [max(0, len(lines) - SHOWN_LINES)]
    return "\n".join(lines[min(*begins, last[0]) if begins else last[0] :])


def text_of(path: Path, hide: Callable[[str], str]) -> str:
    """The end of a log, of which `hide` hides secrets; empty where it is not there: what ended early opened none."""
    try:
        lines = last_lines_of(path, home_of(path))[-MOST_LINES:]
        return redact_tokens("\n".join(_cut(line, hide) for line in lines))
    except FlagPerfError as error:
        return "" if isinstance(error.__cause__, FileNotFoundError) else str(error)


def _cut(line: str, hide: Callable[[str], str]) -> str:
    """`line`, not longer than LONGEST_LINE; what is cut off shows no part of a secret, which nobody knows again."""
    return line if len(line) <= LONGEST_LINE else shortened(hide(redact_tokens(line)), LONGEST_LINE)


def last_words(text: str, framework: Framework) -> str:
    """The last lines, less those that would only hide what was raised."""
    appendix = framework.appendix
    return last_lines("\n".join(x for x in text.splitlines() if not (appendix and appendix.fullmatch(x))))


def last_lines(text: str) -> str:
    """So many of them as are evidence."""
    return "\n".join(text.strip().splitlines()[-EVIDENCE_LINES:])
