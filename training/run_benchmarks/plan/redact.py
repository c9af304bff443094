"""Keep credentials out of what is shown or written: URLs with a user part, `..._TOKEN=...` and the like."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

HIDDEN = "***"
# The user and password of a URL, or of a proxy written without a scheme; an image's digest is neither.
_USER_OF_URL = re.compile(
    r"(?<=://)[^/\s'\"?#]+@|(?<![\w:/])[^\s/'\"@:]+:[^\s/'\"@]+@(?!sha256:[0-9a-f]{64})"
)
_SECRET_WORDS = "token|password|passwd|passphrase|secret|api[_-]?key|access[_-]?key|credentials?"
_SECRET_NAME = rf"(?i:(?:[\w.-]*[_.-])?(?:{_SECRET_WORDS})(?:[_.-][\w.-]*)?)"
# As options, shell variables and Python's dicts write it: NAME=value, 'NAME': 'value'.
_ASSIGNMENT = rf"(?<!\w)({_SECRET_NAME}['\"]?\s*[=:]\s*)"
# What is hidden already, as in a command that stands in a message, stays as it is.
_ASSIGNED_SECRET = re.compile(_ASSIGNMENT + r"(?!\*\*\*(?:['\s]|$))[^\s,}]+")
# An argument ends where its secret does: blanks, commas and quotes in it are the secret's own.
_SECRET_ARGUMENT = re.compile(_ASSIGNMENT + ".+", re.DOTALL)
_SECRET_OPTION = re.compile(rf"--?{_SECRET_NAME}")


def redact_url(url: str) -> str:
    """`url` without the user and password that may stand in it: `https://***@host/simple`."""
    return _USER_OF_URL.sub(f"{HIDDEN}@", url)


def redact_text(text: str) -> str:
    """`text` with the credentials of every URL and every assigned secret in it replaced by `***`."""
    return _ASSIGNED_SECRET.sub(rf"\1{HIDDEN}", redact_url(text))


def redact_values(values: Mapping[str, str]) -> dict[str, str]:
    """The mapping with each value hidden whose name speaks of a secret, and each URL freed of its user."""
    return {
        name: HIDDEN if re.fullmatch(_SECRET_NAME, name) else redact_text(value)
        for name, value in values.items()
    }


def redact_argv(argv: Sequence[str]) -> list[str]:
    """The command with every secret hidden to the end of its argument, also one that follows its option."""
    return [
        HIDDEN
        if _SECRET_OPTION.fullmatch(before) and not argument.startswith("-")
        else _SECRET_ARGUMENT.sub(rf"\1{HIDDEN}", redact_url(argument))
        for before, argument in zip(("", *argv), argv, strict=False)
    ]
