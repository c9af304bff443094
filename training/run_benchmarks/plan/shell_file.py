"""Secrets that a shell file assigns as literal values, in the forms that such files are written in.

What a script computes, or reads from elsewhere, stands nowhere in it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator

from run_benchmarks.plan.redact import secrets_in_text

_ASSIGNMENT = re.compile(r"(\w+)\+?=(.*)", re.DOTALL)
# ${NAME:-value} and ${NAME:=value}, with or without the colon.
_DEFAULT = re.compile(r"\$\{(\w+):?[-=]([^{}]*)\}")
_ANSI_QUOTED = re.compile(r"\$(?=['\"])")


def secrets_in_shell(text: str, is_secret: Callable[[str], bool]) -> Iterator[str]:
    """The literal values that a bash file gives to variables whose names `is_secret`, without their quotation.

    Forms: NAME=value, NAME+=value, export and declare, in any mix of quotes and backslashes (`a"b"'c'`), `$'value'`
    without escapes, and the defaults `${NAME:-value}` and `${NAME:=value}`.
    """
    yield from secrets_in_text(text)
    lines = text.replace("\\\n", "").splitlines()
    for line in [*lines, *(_ANSI_QUOTED.sub("", line) for line in lines)]:
        for word in _words(line):
            yield from _secrets_in_word(word, is_secret)


def _secrets_in_word(word: str, is_secret: Callable[[str], bool]) -> Iterator[str]:
    assignment = _ASSIGNMENT.fullmatch(word)
    named = bool(assignment and is_secret(assignment[1]))
    for default in _DEFAULT.finditer(word):
        if named or is_secret(default[1]):
            yield default[2]
    if assignment and named:
        yield assignment[2]


def _words(line: str) -> Iterator[str]:
    """The words of a line as a shell parts and unquotes them; up to a quote that is not closed in it."""
    words = shlex.shlex(line, posix=True, punctuation_chars=";&|()<>")
    words.whitespace_split = True
    words.commenters = ""  # a `#` in a word begins none
    try:
        yield from words
    except ValueError:  # a text of several lines, or an apostrophe in a comment
        return
