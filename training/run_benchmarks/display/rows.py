"""The rows of a panel: a label, a drawing and a text each, fitted to the width and height of the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from run_benchmarks.display.course import Course
from utils.text_files import one_line

# Wider bars show nothing that these do not.
LONGEST_DRAWING = 60
LEAST_DRAWING = 6
GAP = "  "


@dataclass(frozen=True)
class Style:
    """The characters that a terminal has for bars and for what is left out."""

    done: str = "━"
    rest: str = "─"
    left_out: str = "…"
    ascii_only: bool = False


UNICODE, ASCII = Style(), Style("=", "-", "~", ascii_only=True)


@dataclass(frozen=True)
class Row:
    """A row of the panel. Its drawing is a bar of which `part` (0 to 1) is done, a `course`, or `words`."""

    label: str
    text: str = ""
    words: str = ""
    part: float | None = None
    course: Course | None = None


def drawn(rows: Sequence[Row], width: int, style: Style) -> list[Text]:
    """The rows as lines, columns aligned; where `width` cells are few the drawings give way to the texts."""
    rows = [replace(r, label=one_line(r.label), text=one_line(r.text), words=one_line(r.words)) for r in rows]
    label = min(_widest(row.label for row in rows), max(width // 4, 8))
    drawing = min(width - label - _widest(row.text for row in rows) - 2 * len(GAP), LONGEST_DRAWING)
    if drawing < LEAST_DRAWING:
        drawing, rows = 0, [row for row in rows if row.text or row.words]
    lines = [_line(row, label, drawing, style) for row in rows]
    for line in lines:
        line.truncate(width)
    return lines


def fitted(text: str, width: int, style: Style) -> str:
    """`text` in at most `width` cells: of one that is longer, as of a host's name, the middle is left out."""
    if cell_len(text) <= width:
        return text
    if width < 3:
        return set_cell_size(text, max(0, width))
    head = width // 2
    return f"{set_cell_size(text, head)}{style.left_out}{_last(text, width - 1 - head)}"


def _line(row: Row, label: int, drawing: int, style: Style) -> Text:
    parts: list[str | tuple[str, str]] = [(set_cell_size(fitted(row.label, label, style), label), "bold")]
    words = row.text
    if drawing:
        parts += [GAP, *_drawing(row, drawing, style)]
    else:  # a stage's name is worth more than a bar
        words = ", ".join(filter(None, (row.words, row.text)))
    return Text.assemble(*parts, GAP, words, no_wrap=True, overflow="crop")


def _drawing(row: Row, width: int, style: Style) -> list[tuple[str, str]]:
    if row.part is None:
        words = row.course.line(width, style.ascii_only) if row.course else row.words
        return [(words.ljust(width), "cyan" if row.course else "")]
    done = int(min(1.0, max(0.0, row.part)) * width)  # also of a part that is no number
    return [(style.done * done, "green"), (style.rest * (width - done), "bright_black")]


def _last(text: str, width: int) -> str:
    tail = text[-width:] if width else ""
    while cell_len(tail) > width:
        tail = tail[1:]
    return tail


def _widest(texts: Iterable[str]) -> int:
    return max(map(cell_len, texts), default=0)
