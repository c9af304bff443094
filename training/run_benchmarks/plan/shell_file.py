"""Shell files that are sourced: whether bash can parse one, and the secrets that it assigns as literal values.

These in the forms that such files are written in: what a script computes, or reads from elsewhere, stands nowhere in
it.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from run_benchmarks.plan.redact import secrets_in_text
from utils.bounded_run import TooMuchOutputError, run_bounded
from utils.errors import FlagPerfError

LARGEST = 2**20  # characters of a script: more is data that lies in its place
PARSE = ("bash", "-n")
# Where a file that is sourced switches these patterns on they are syntax; where it does not, they are errors. Another
# that it sources itself may do so.
EXTGLOB = "extglob"
_MAY_SWITCH = re.compile(rb"extglob|(?:^|[\s;&|])(?:\.|source)[ \t]")
PARSE_S = 60.0
# What bash says of a script that it cannot parse. Its words and its lines are left out: they may be secrets.
_REFUSED = re.compile(r"line (\d+): ((?:syntax error|unexpected EOF)[^`\n]*(?:`[^\w\n]*')?)")
_ASSIGNMENT = re.compile(r"(\w+)\+?=(.*)", re.DOTALL)
# ${NAME:-value} and ${NAME:=value}, with or without the colon.
_DEFAULT = re.compile(r"\$\{(\w+):?[-=]([^{}]*)\}")
_ANSI_QUOTED = re.compile(r"\$(?=['\"])")
# What a line is made of for a shell: each piece begins where the last one ended, and is looked at once.
_PIECE = re.compile(
    r"""(?P<between>[ \t\r\n;&|()<>]+)|'(?P<literal>[^']*)'|"(?P<quoted>[^"\\]*(?:\\.[^"\\]*)*)\"|"""
    r"""\\(?P<escaped>.?)|(?P<bare>[^ \t\r\n;&|()<>'"\\]+)""",
    re.DOTALL,
)
_OPERATORS = re.compile(r"[;&|<>()]+")
_NO_TAIL = re.compile(
    r"[A-Za-z_-]*|[^'\"`$=/]*['\"`$=/].*", re.DOTALL
)  # a command, another assignment, a path
_ESCAPED = re.compile(r'\\(["\\$`])')  # in double quotes


def read_script(root: Path, path: str | None) -> str:
    """The text of a script below `root` that is sourced; nothing where there is none.

    Raises:
        FlagPerfError: it is no plain file, cannot be read, or is larger than a script is.
    """
    if path is None:
        return ""
    file = root / path
    if not file.is_file():  # a pipe would be waited for
        raise FlagPerfError(
            "is no plain file", where=str(file), remedy="put a file in its place, or remove it"
        )
    try:
        with file.open(encoding="utf-8", errors="replace") as script:
            text = script.read(LARGEST + 1)
    except OSError as error:
        raise FlagPerfError(
            f"cannot be read: {error.strerror}", where=str(file), remedy="see who owns it, and its mode"
        ) from error
    if len(text) > LARGEST:
        remedy = "keep data out of it: a shell reads all of it before each rank starts"
        raise FlagPerfError(f"has more than {LARGEST} characters", where=str(file), remedy=remedy)
    return text


def syntax_error(script: Path) -> tuple[str, str] | None:
    """Where bash cannot parse a script, as `file:line`, and why; None where it can, or where there is no bash here.

    Of a sourced file that cannot be parsed bash passes over all that follows, and goes on.
    """
    file = str(script.absolute())
    environment = {
        name: value for name, value in os.environ.items() if name != "BASH_ENV"
    }  # a file to execute
    try:
        patterns = ("-O", EXTGLOB) if _MAY_SWITCH.search(script.read_bytes()) else ()
        done = run_bounded(
            [*PARSE, *patterns, file],
            timeout_s=PARSE_S,
            most=4 * LARGEST,
            cwd="/",
            env={**environment, "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired, TooMuchOutputError):
        return None
    if done.returncode == 0:
        return None
    match = _REFUSED.search(done.stderr.replace(file, ""))
    return (
        (f"{script}:{match[1]}", match[2].strip())
        if match
        else (str(script), f"it ends with {done.returncode}")
    )


def secrets_in_shell(text: str, is_secret: Callable[[str], bool]) -> Iterator[str]:
    """The literal values that a bash file gives to variables whose names `is_secret`, without their quotation.

    Forms: NAME=value, NAME+=value, export and declare, in any mix of quotes and backslashes (`a"b"'c'`), `$'value'`
    without escapes, and the defaults `${NAME:-value}` and `${NAME:=value}`. And the end of a value that should be in
    quotes: of `NAME=a;b1` bash says that there is no command b1.
    """
    yield from secrets_in_text(text)
    lines = text.replace("\\\n", "").splitlines()
    ansi = (_ANSI_QUOTED.sub("", line) for line in lines if _ANSI_QUOTED.search(line))
    for line in (*lines, *ansi):
        for word in _words(line):
            yield from _secrets_in_word(word, is_secret)
        yield from _tail(line, is_secret)


def _secrets_in_word(word: str, is_secret: Callable[[str], bool]) -> Iterator[str]:
    assignment = _ASSIGNMENT.fullmatch(word)
    named = bool(assignment and is_secret(assignment[1]))
    for default in _DEFAULT.finditer(word):
        if named or is_secret(default[1]):
            yield default[2]
    if assignment and named:
        yield assignment[2]


def _tail(line: str, is_secret: Callable[[str], bool]) -> Iterator[str]:
    """What the last word of a line gives to a secret's name behind the last `;`, `&`, `|`, `<` or `>` in it."""
    assignment = _ASSIGNMENT.fullmatch((line.split() or [""])[-1])
    if assignment and is_secret(assignment[1]):
        _, *others = _OPERATORS.split(assignment[2])
        yield from (tail for tail in others[-1:] if not _NO_TAIL.fullmatch(tail))


def _words(line: str) -> Iterator[str]:
    """The words of a line as a shell parts and unquotes them; up to a quote that is not closed in it."""
    word: list[str] = []
    place = 0
    while piece := _PIECE.match(line, place):
        place = piece.end()
        if piece["between"] is None:
            word.append(
                _ESCAPED.sub(r"\1", piece["quoted"]) if piece["quoted"] else piece[piece.lastindex or 0]
            )
        elif word:
            yield "".join(word)
            word = []
    if word and place == len(line):  # else a text of several lines, or an apostrophe in a comment
        yield "".join(word)
