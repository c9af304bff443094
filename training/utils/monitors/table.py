"""Tables that vendors' tools draw with bars: a heading of some lines, then as many lines for each device."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_BORDER = re.compile(r"[|+][-=+|]*")


@dataclass(frozen=True)
class DeviceRow:
    """The lines of a device, each as its cells, below those of the heading."""

    heading: Sequence[Sequence[str]]
    lines: Sequence[Sequence[str]]

    def cell(self, line: int, word: str) -> str:
        """What stands in `line` (from 0) where the heading has `word`, a regular expression.

        Raises:
            ValueError: nothing has that heading.
        """
        for number, heading in enumerate(self.heading[line]):
            if re.search(word, heading):
                return self.lines[line][number] if number < len(self.lines[line]) else ""
        raise ValueError(f"no column is headed {word!r}")


def device_rows(text: str, word: str, lines: int = 2) -> list[DeviceRow]:
    """The devices of the first table whose heading begins with a line that has `word` in it.

    Args:
        lines: of the heading, and of each device.

    Raises:
        ValueError: there is no such table, it ends within a device, or a line in it is none of a table.
    """
    rest = [line.strip() for line in text.splitlines()]
    start = next((number for number, line in enumerate(rest) if line.startswith("|") and word in line), None)
    if start is None:
        raise ValueError(f"there is no table headed {word!r}")
    cells = [_cells(line) for line in _table(rest[start:])]
    heading, *devices = (cells[number : number + lines] for number in range(0, len(cells), lines))
    if len(cells) % lines:
        raise ValueError(f"the table ends within a device: {' | '.join(cells[-1])}")
    return [DeviceRow(heading, device) for device in devices]


def _table(lines: Sequence[str]) -> list[str]:
    """The lines that hold cells, to the end of the table: an empty line or that of the text."""
    end = lines.index("") if "" in lines else len(lines)
    table = [line for line in lines[:end] if not _BORDER.fullmatch(line)]
    for line in table:
        if not line.startswith("|"):
            raise ValueError(f"a line is none of the table's: {line}")
    return table


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]
