"""Make web.txt.xz from Debian's package sword-text-web, verse for verse beside the King James text.

    apt-get download sword-text-web && dpkg-deb -x sword-text-web_*.deb unpacked && python3 make_web.py unpacked

The package holds a SWORD module of type zText: books compressed one by one, an index of them, and for each verse
where in which book it stands. Markup, notes and headings are left out; the words are not touched. A chapter that has
not as many verses as its King James counterpart is left out, and so is the Apocrypha: of each such verse a "-" stands.
"""

from __future__ import annotations

import hashlib
import html
import lzma
import re
import struct
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

MODULE = Path("usr/share/sword/modules/texts/ztext/engWEB2015eb")
KING_JAMES = Path(__file__).parents[2] / "bert" / "demo_data" / "kjv.txt.xz"
APOCRYPHA = {
    *("DanGr", "Tob", "Jdt", "EsthGr", "Wis", "Sir", "Bar", "1Macc", "2Macc", "1Esd", "PrMan", "AddPs"),
    *("3Macc", "2Esd", "4Macc"),
}
BOOK_INDEX, VERSE_INDEX = "<III", "<IIH"  # offset, bytes, bytes unpacked; book, offset, bytes
CHAPTER = re.compile(r'<chapter [^>]*osisID="(\w+)\.(\d+)" sID')
DROPPED = re.compile(r"<(note|title)\b.*?</\1>", re.DOTALL)
TAG = re.compile(r"<[^>]+>")
BACK_MATTER = re.compile(r'<div [^>]*type="(?:glossary|back)".*', re.DOTALL)


def entries(folder: Path, testament: str) -> Iterator[str]:
    """Every entry of a testament in its order: headings of books and chapters, and verses."""
    books, index, verses = ((folder / f"{testament}.bz{kind}").read_bytes() for kind in "zsv")
    unpacked = [
        zlib.decompress(books[offset : offset + size]) if size else b""
        for offset, size, _ in struct.iter_unpack(BOOK_INDEX, index)
    ]
    for book, offset, size in struct.iter_unpack(VERSE_INDEX, verses):
        yield unpacked[book][offset : offset + size].decode("utf-8") if size else ""


def chapters(folder: Path) -> list[list[str]]:
    """The verses of every chapter of the 66 books."""
    chapters: dict[tuple[str, str], list[str]] = {}
    for testament in ("ot", "nt"):
        current: list[str] | None = None
        for entry in entries(folder, testament):
            heading = CHAPTER.search(entry)
            if heading:
                current = chapters.setdefault((heading[1], heading[2]), [])
            elif current is not None:
                current.append(words_of(entry))
    return [without_trailing_gaps(verses) for (book, _), verses in chapters.items() if book not in APOCRYPHA]


def words_of(entry: str) -> str:
    """An entry's text without notes, headings and markup."""
    text = TAG.sub("", DROPPED.sub(" ", BACK_MATTER.sub("", entry)))
    return " ".join(html.unescape(text).split())


def without_trailing_gaps(verses: list[str]) -> list[str]:
    """The index has a place for every verse of the versification; the last may be empty."""
    while verses and not verses[-1]:
        verses = verses[:-1]
    return verses


def main() -> None:
    ours = chapters(Path(sys.argv[1]) / MODULE)
    text = lzma.decompress(KING_JAMES.read_bytes()).decode("ascii").rstrip("\n")
    theirs = [chapter.split("\n") for chapter in text.split("\n\n")]
    aligned = [
        [verse or "-" for verse in mine] if len(mine) == len(other) else ["-"] * len(other)
        for mine, other in zip(ours, theirs, strict=True)
    ]
    made = ("\n\n".join("\n".join(chapter) for chapter in aligned) + "\n").encode("utf-8")
    packed = lzma.compress(made, preset=9)
    Path(__file__).with_name("web.txt.xz").write_bytes(packed)
    verses = [verse for chapter in aligned for verse in chapter if verse != "-"]
    print(f"{len(verses)} verses, {sum(len(verse.split()) for verse in verses)} words")
    print("characters:", "".join(sorted({c for verse in verses for c in verse if not c.isalnum()})))
    for name, data in (("text", made), ("web.txt.xz", packed)):
        print(f"{name}: {len(data)} bytes, SHA-256 {hashlib.sha256(data).hexdigest()}")


if __name__ == "__main__":
    main()
