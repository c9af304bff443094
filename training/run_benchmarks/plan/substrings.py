"""Many texts looked for in another at once, in time that grows with that one and not with how many they are."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ahocorasick_rs import BytesAhoCorasick

# One end of a line: an empty line is no wrapping.
_WRAP = re.compile(rb"(?<!\n)\r?\n[ \t]*(?![ \t\r\n])")

# Bytes: of longer texts that repeat themselves a DFA, which is faster to search with, takes a quadratic time to build.
LONG = 1000


class Substrings:
    """Replaces each of some texts wherever it stands: the leftmost first, of several there the longest."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = frozenset(map(_bytes, texts)) - {b""}

    def replaced(self, text: str, by: str) -> str:
        """`text` with `by` in place of each."""
        if not self._texts:
            return text
        data = _bytes(text)
        spans = [(start, end) for _, start, end in self._search.find_matches_as_indexes(data)]
        return _with(data, spans, by) if spans else text

    def replaced_wrapped(self, text: str, by: str) -> str:
        """`text` with `by` in place of each that ends of lines, and the indents behind these, stand in."""
        if not self._texts or "\n" not in text:
            return text
        data = _bytes(text)
        spans = list(self._wrapped_spans(data))
        return _with(data, spans, by) if spans else text

    def _wrapped_spans(self, data: bytes) -> Iterator[tuple[int, int]]:
        """They are looked for in the lines joined; where a line begins there, and here, gives the way back."""
        matches = self._search.find_matches_as_indexes(_WRAP.sub(b"", data))
        wraps = list(_WRAP.finditer(data)) if matches else []
        begins = [0, *(wrap.end() for wrap in wraps)]
        lengths = (wrap.start() - begin for wrap, begin in zip(wraps, begins, strict=False))
        joined = list(accumulate(lengths, initial=0))
        for _, start, end in matches:
            first, last = bisect_right(joined, start) - 1, bisect_right(joined, end - 1) - 1
            if first != last:
                yield begins[first] + start - joined[first], begins[last] + end - joined[last]

    @cached_property
    def _search(self) -> BytesAhoCorasick:
        from ahocorasick_rs import BytesAhoCorasick, Implementation, MatchKind

        is_long = any(len(text) > LONG for text in self._texts)
        kind = Implementation.ContiguousNFA if is_long else None
        return BytesAhoCorasick(self._texts, matchkind=MatchKind.LeftmostLongest, implementation=kind)


def without_wraps(text: str) -> str:
    """`text` as one line."""
    return _WRAP.sub(b"", _bytes(text)).decode("utf-8", "surrogatepass")


def _with(data: bytes, spans: Iterable[tuple[int, int]], by: str) -> str:
    """`data` with `by` in place of spans that come in order and do not overlap."""
    parts, done = [], 0
    for start, end in spans:
        parts += [data[done:start], by.encode()]
        done = end
    return b"".join([*parts, data[done:]]).decode("utf-8", "surrogatepass")


def _bytes(text: str) -> bytes:
    """The library takes no text with half a character, as names and logs of hosts may have."""
    return text.encode("utf-8", "surrogatepass")
