"""Keep credentials out of what is shown or written: URLs with a user part, `..._TOKEN=...` and the like."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

HIDDEN = "***"
# What stands between `scheme://` and the last `@` before the path is a user and a password.
_USER_OF_URL = re.compile(r"(?<=://)[^/\s'\"?#]+@")
# pip's configuration and shell variables both write `name = value` or `name=value`.
_SECRET_WORDS = "token|password|passwd|passphrase|secret|api[_-]?key|access[_-]?key|credential"
_SECRET_NAME = rf"[\w.-]*(?:{_SECRET_WORDS})[\w.-]*"
_ASSIGNED_SECRET = re.compile(rf"(?i)\b({_SECRET_NAME}['\"]?\s*[=:]\s*)(?!\s)([^\s,}}]+)")


def redact_url(url: str) -> str:
    """`url` without the user and password that may stand in it: `https://***@host/simple`."""
    return _USER_OF_URL.sub(f"{HIDDEN}@", url)


def redact_text(text: str) -> str:
    """`text` with the credentials of every URL and every assigned secret in it replaced by `***`."""
    return _ASSIGNED_SECRET.sub(rf"\1{HIDDEN}", redact_url(text))


def redact_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """The mapping with each value hidden whose name speaks of a secret, and each URL freed of its user."""
    return {
        name: HIDDEN
        if re.fullmatch(rf"(?i){_SECRET_NAME}", name)
        else redact_text(value)
        if isinstance(value, str)
        else value
        for name, value in values.items()
    }
