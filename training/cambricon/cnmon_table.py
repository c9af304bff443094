"""The table that Cambricon's `cnmon` prints, read by its headings: its columns changed with CNMON 5."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from utils.errors import FlagPerfError
from utils.monitors.table import DeviceRow, device_rows

_REMEDY = "run cnmon on the host; a card that does not answer needs a reset or a reboot"


def cards(text: str) -> Iterator[Mapping[str, str]]:
    """Each card's cells by their headings (Card, Name, Temp, Pwr:Usage/Cap, Memory-Usage, Util, ...).

    Raises:
        FlagPerfError: there is no such table, or a row has another form.
    """
    try:
        rows = device_rows(text, "Card  VF")
    except ValueError as error:
        last = text.strip().rpartition("\n")[2] or "nothing"
        raise FlagPerfError(f"cnmon reports trouble: {last.strip()} ({error})", remedy=_REMEDY) from error
    for row in rows:
        card = _by_headings(row)
        if not card.get("Card", "").isdecimal() or not {"Name", "Memory-Usage"} <= set(card):
            words = " | ".join(cell for line in row.lines for cell in line)
            raise FlagPerfError(f"cnmon reports trouble: {words}", remedy=_REMEDY)
        yield card


def _by_headings(row: DeviceRow) -> Mapping[str, str]:
    """A cell has several values, each below a word of its heading; the last one may have blanks."""
    card: dict[str, str] = {}
    for headings, cells in zip(row.heading, row.lines, strict=True):
        for names, cell in zip(map(str.split, headings), cells, strict=False):
            card.update(zip(names, cell.split(maxsplit=len(names) - 1), strict=False))
    return card
