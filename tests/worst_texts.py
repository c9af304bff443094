"""For a regular expression the texts that cost it the most, should it be careless: long rows of what it looks for."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

try:
    from re import _compiler as sre_compile
    from re import _constants as sre
    from re import _parser as sre_parse
except ImportError:  # Python 3.10
    import sre_compile  # type: ignore[no-redef]
    import sre_constants as sre  # type: ignore[no-redef]
    import sre_parse  # type: ignore[no-redef]

CHARACTERS = [
    *map(chr, [*range(32, 127), *range(32), 127]),
    "\N{NO-BREAK SPACE}",
    "é",
    "\N{FULLWIDTH DIGIT ONE}",
    "中",
]
KINDS = {sre.NOT_LITERAL, sre.ANY, sre.IN, sre.CATEGORY}
ONE = {sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN, sre.CATEGORY, sre.RANGE}
REPEATS = {sre.MAX_REPEAT, sre.MIN_REPEAT, getattr(sre, "POSSESSIVE_REPEAT", sre.MAX_REPEAT)}
AROUND = {sre.ASSERT, sre.ASSERT_NOT}
MOST = 400  # of an expression; of the few that have more parts, as many by chance, always the same
STRANGE = "\0"  # what hardly an expression takes
Node = tuple[Any, Any]


@dataclass(frozen=True, order=True)
class WorstText:
    """A beginning that fits, a row of one thing that the expression takes, and an end."""

    begin: str
    row: str
    end: str

    def of_length(self, length: int) -> str:
        """It, with about so many characters."""
        return self.begin + self.row * (length // len(self.row)) + self.end


def worst_texts(pattern: re.Pattern[Any]) -> list[WorstText]:
    """Those for an expression, always in the same order; of one of bytes all are ASCII."""
    parts = _Parts(pattern)
    ends = ("", "\n", STRANGE, STRANGE + parts.whole)
    texts = sorted(WorstText(*each) for each in itertools.product(parts.beginnings, parts.rows, ends))
    return texts if len(texts) <= MOST else random.Random(0).sample(texts, MOST)


class _Parts:
    """What an expression is made of, as texts."""

    def __init__(self, pattern: re.Pattern[Any]) -> None:
        self._flags = pattern.flags
        self._groups: dict[int, str] = {}
        tree = sre_parse.parse(pattern.pattern, pattern.flags)
        self._state = tree.state
        self._letters: list[Node] = []
        self.beginnings, rows = {""}, set()
        self.whole = self.sample(tree)
        self._look(list(tree), "", rows)
        self.rows = (rows - {""}) | set(self._kinds(isinstance(pattern.pattern, bytes)))

    def _look(self, nodes: list[Node], before: str, rows: set[str]) -> None:
        """Take the samples of what is repeated or may be in two ways, and of what leads there."""
        text = ""
        for node in nodes:
            if node[0] in KINDS:
                self._letters.append(node)
            for inner in _inner(node):
                self._look(inner, before + text, rows)
            if node[0] in REPEATS or node[0] in AROUND:
                self.beginnings.add(before + text)
                rows |= {before + text, self.sample([node]), text + self.sample([node])}
            text += self.sample([node])
        rows.add(text)

    def sample(self, nodes: Any) -> str:
        """A text that fits, as short as can be; what may be there is."""
        return "".join(self._sample(kind, argument) for kind, argument in nodes)

    def _sample(self, kind: Any, argument: Any) -> str:
        if kind in ONE:
            fits = self._compiled((kind, argument))
            return next((char for char in CHARACTERS if fits.fullmatch(char)), "")
        if kind in REPEATS:
            return self.sample(argument[2]) * min(max(argument[0], 1), argument[1])
        if kind is sre.BRANCH:
            return self.sample(argument[1][0])
        if kind is sre.SUBPATTERN:
            self._groups[argument[0]] = self.sample(argument[3])
            return self._groups[argument[0]]
        if kind is sre.GROUPREF:
            return self._groups[argument]
        return self.sample(argument) if kind is getattr(sre, "ATOMIC_GROUP", None) else ""

    def _kinds(self, is_bytes: bool) -> Iterator[str]:
        """A character of each kind that the expression tells from others."""
        fits = [self._compiled(node) for node in self._letters]
        seen: set[tuple[bool, ...]] = set()
        for char in CHARACTERS:
            kind = (char == "\n", *(bool(each.fullmatch(char)) for each in fits))
            if any(kind[1:]) and kind not in seen and not (is_bytes and not char.isascii()):
                seen.add(kind)
                yield char

    def _compiled(self, node: Node) -> re.Pattern[str]:
        flags = (self._flags | re.ASCII) & ~re.UNICODE if not self._flags & re.UNICODE else self._flags
        compiled: re.Pattern[str] = sre_compile.compile(sre_parse.SubPattern(self._state, [node]), flags)
        return compiled


def _inner(node: Node) -> list[list[Node]]:
    kind, argument = node
    if kind in REPEATS:
        return [list(argument[2])]
    if kind is sre.BRANCH:
        return [list(each) for each in argument[1]]
    if kind is sre.SUBPATTERN:
        return [list(argument[3])]
    if kind in AROUND:
        return [list(argument[1])]
    return [list(argument)] if kind is getattr(sre, "ATOMIC_GROUP", None) else []
