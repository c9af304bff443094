"""Text from anywhere as Markdown: it shows as it is, and makes no heading, table, link, image, HTML or formula."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from utils.text_files import one_line, printable

# Words between two backticks are code, where nothing in them means something to a table.
_CODE = re.compile(r"(?<!`)(`[^`\\|]+`)(?!`)")
# What means something wherever it stands: to CommonMark, in tables, to what makes links of addresses, to GitHub ($).
_ANYWHERE = re.compile(
    r"[\\`*\[\]|~$]|<(?=[A-Za-z/!?])|&(?=[#A-Za-z])|(?<![^\W_])_|_(?![^\W_])|(?<=:)/(?=/)|(?<=www)\."
)
# And at the beginning of a line: headings, quotations, rules, lists.
_AT_START = re.compile(r"\A(\d*)([#>=]|[-+](?=[-+\s]|$)|(?<=\d)[.)](?=\s|$))")


def inline(text: str) -> str:
    """`text` as a line: a paragraph, or what stands behind the mark of a heading or of an item."""
    return _AT_START.sub(r"\1\\\2", _escaped(one_line(text).strip()))


def listed(lines: Iterable[str]) -> str:
    """A list with an item for each line."""
    return "\n".join(f"- {inline(line)}" for line in lines)


def table_row(cells: Sequence[str]) -> str:
    """A row of a table."""
    return f"| {' | '.join(_escaped(one_line(cell).strip()) for cell in cells)} |"


def fenced(text: str) -> str:
    """`text` as a block of code, whose fence is longer than any row of backticks in it."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{printable(text)}\n{fence}"


def _escaped(line: str) -> str:
    # of what is split by a group, every second part is what the group took
    parts = _CODE.split(line)
    return "".join(p if number % 2 else _ANYWHERE.sub(r"\\\g<0>", p) for number, p in enumerate(parts))
