"""The table that Cambricon's `cnmon` prints, read by its headings: its columns changed with CNMON 5."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from utils.errors import FlagPerfError

_REMEDY = "run cnmon on the host; a card that does not answer needs a reset or a reboot"


def cards(text: str) -> Iterator[Mapping[str, str]]:
    """Each card's cells by their headings (Card, Name, Temp, Pwr:Usage/Cap, Memory-Usage, Util, ...).

    Raises:
        FlagPerfError: there is no such table, or a row has another form.
    """
    before, rule, after = text.partition("|=")
    headings = _cells(before)
    if not rule or len(headings) != 2 or not headings[0][0].startswith("Card"):
        last = (text.strip().splitlines() or ["nothing"])[-1]
        raise FlagPerfError(f"cnmon reports trouble: {last.strip()}", remedy=_REMEDY)
    rows = _cells(after.partition("Processes:")[0])
    if len(rows) % 2:
        raise FlagPerfError("cnmon reports trouble: the last card has one line", remedy=_REMEDY)
    for first, second in zip(rows[::2], rows[1::2], strict=True):
        card: dict[str, str] = {}
        for line, cells in zip(headings, (first, second), strict=True):
            for names, cell in zip(map(str.split, line), cells, strict=False):
                words = cell.split(maxsplit=len(names) - 1)
                card.update(zip(names, words, strict=False))
        if (
            not card.get("Card", "").isdecimal()
            or "Memory-Usage" not in card
            or len(first) != len(headings[0])
        ):
            raise FlagPerfError(f"cnmon reports trouble: {' | '.join(first + second)}", remedy=_REMEDY)
        yield card


def _cells(text: str) -> list[list[str]]:
    """The cells of the lines with several of them."""
    lines = (line.strip() for line in text.splitlines())
    rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|"))
    return [row for row in rows if len(row) > 1 and not row[0].startswith("=")]
