"""Make kjv.txt.xz from Debian's packages bible-kjv and bible-kjv-text (needs their `bible` command).

    apt-get install bible-kjv && python3 make_kjv.py

`bible -f RANGE` prints one verse a line, "<book><chapter>:<verse> <text>". The reference is dropped,
runs of spaces become one, and a blank line is set between chapters: the form that BERT's preparation
reads (a sentence a line, a blank line between documents).
"""

from __future__ import annotations

import hashlib
import lzma
import subprocess
import sys
from pathlib import Path

VERSES, CHAPTERS = 31_102, 1_189  # the 66 books of the Protestant canon; the Apocrypha are not in the package


def chapters_of(dump: str) -> list[list[str]]:
    """The verses of each chapter, in canonical order."""
    chapters: dict[str, list[str]] = {}
    for line in dump.splitlines():
        reference, _, verse = line.partition(" ")
        chapters.setdefault(reference.split(":")[0], []).append(" ".join(verse.split()))
    return list(chapters.values())


def main() -> int:
    dump = subprocess.run(["bible", "-f", "gen1:1-rev22:21"], check=True, capture_output=True, text=True)
    chapters = chapters_of(dump.stdout)
    verses = sum(len(chapter) for chapter in chapters)
    if (verses, len(chapters)) != (VERSES, CHAPTERS):
        print(
            f"bible printed {verses} verses in {len(chapters)} chapters, not {VERSES} in {CHAPTERS}",
            file=sys.stderr,
        )
        return 1
    text = ("\n\n".join("\n".join(chapter) for chapter in chapters) + "\n").encode("ascii")
    target = Path(__file__).with_name("kjv.txt.xz")
    target.write_bytes(lzma.compress(text, preset=9 | lzma.PRESET_EXTREME))
    print(
        f"{target}: {target.stat().st_size} bytes, text {len(text)} bytes, "
        f"SHA-256 of the text {hashlib.sha256(text).hexdigest()}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
