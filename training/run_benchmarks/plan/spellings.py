"""How else a value is written: as JSON, Python, shells, pages and URLs do."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from urllib.parse import quote, quote_plus, unquote


def spellings_of(value: str) -> Iterator[str]:
    """A value as JSON, Python, shells, pages and URLs write it too, and each of these in quotes once more."""
    once = {value, *_quoted(value), *_in_page(value), *_in_url(value)}
    yield from once
    for each in once:
        yield from _quoted(each)


def _quoted(value: str) -> Iterator[str]:
    """As it stands between the quotation marks of JSON, Python and shells."""
    for text in (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]):
        yield text
        yield re.sub("[<>&]", lambda match: f"\\u{ord(match[0]):04x}", text)  # the engines'
    for written in (repr, ascii):
        yield written(value)[1:-1]
        yield written(f"{value}'\"")[1:-4]  # beside both kinds of quotation marks
    yield value.encode("ascii", "backslashreplace").decode()
    yield repr(value.encode(errors="replace"))[2:-1]
    yield value.replace("'", "'\"'\"'")
    yield value.replace("'", "'\\''")
    yield re.sub(r"([^\w@%+=:,./-])", r"\\\1", value)


def _in_page(value: str) -> Iterator[str]:
    escaped = html.escape(value)
    yield from (escaped, html.escape(value, quote=False))
    yield escaped.replace("&quot;", "&#34;").replace("&#x27;", "&#39;")  # jinja's


def _in_url(value: str) -> Iterator[str]:
    yield unquote(value)
    for text in (
        quote(value, safe="", errors="replace"),
        quote(value, errors="replace"),
        quote_plus(value, errors="replace"),
    ):
        yield text
        yield re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), text)
