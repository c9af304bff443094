"""Make verse.txt.xz from Debian's package fortunes-zh.

    apt-get download fortunes-zh && dpkg-deb -x fortunes-zh_*.deb unpacked && python3 make_verse.py unpacked

The package's files hold fortunes divided by lines of `%`, with terminal colour codes. Only classical verse is
taken: what is in the public domain by its age, and whose punctuation is that of its metre. Each poem or couplet
becomes one line: its title and author where they are known, and its text.
"""

# ruff: noqa: RUF001 (Chinese punctuation)

from __future__ import annotations

import hashlib
import lzma
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path("usr/share/games/fortunes")
# The authors of `chinese` that are named with a title and are modern, wrote prose, are unknown or have their name cut
# short. All others were looked at: the last of them died in 1907.
NOT_TAKEN = {
    *("吴军", "鲁迅", "毛泽东", "王国维", "言峰绮礼", "卫宫切嗣", "冰心", "余光中", "朱自清", "陈毅"),
    *("赫拉利", "尤瓦尔赫拉利"),
    *("荀子", "孟子及其弟子", "李斯", "司马迁", "诸葛亮", "王羲之", "陶弘景", "吴均"),
    *("佚名", "王禹", "鹿虔"),
}
PROSE = re.compile(r".*[记序书说表论传铭赋疏]|稼说.*")  # as such works are called
SAYINGS = ("菜根谭", "增广贤文")  # in pairs of equal lines: 1591, and by 1598
CLEAN = re.compile(r"[㐀-䶿一-鿿𠀀-𪛟《》〈〉·，。？！；：、“” ]+")
ATTRIBUTION = re.compile(r"\s*-- *(?P<author>[㐀-鿿]*) *《(?P<title>[^《》]+)》\s*")
SEVERAL_NAMES = re.compile(r"\s*/.*")


@dataclass(frozen=True)
class Verse:
    """A poem or a couplet; title and author are empty where they are not known."""

    title: str
    author: str
    text: str

    @property
    def line(self) -> str:
        """One document: `《title》 author text`."""
        title = f"《{self.title}》" if self.title else ""
        return " ".join(part for part in (title, self.author, self.text) if part)

    @property
    def clauses(self) -> frozenset[str]:
        return frozenset(clause for clause in re.split(r"[^㐀-鿿𠀀-𪛟]+", self.text) if len(clause) > 2)


def fortunes(path: Path) -> list[list[str]]:
    """The non-empty lines of each fortune, without colour codes and blanks at their ends."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", path.read_text(encoding="utf-8"))
    entries = re.split(r"^%$", plain, flags=re.MULTILINE)
    stripped = [[line.strip() for line in entry.splitlines() if line.strip()] for entry in entries]
    return [lines for lines in stripped if lines]


def tang_and_song(lines: list[str]) -> Verse:
    """A poem of `tang300` or `song100`: a line with the title, one with the author, the text."""
    title, author, *text = lines
    name = re.sub(r"[（〔(].*", "", re.split("[:：]", author, maxsplit=1)[1])
    return Verse(_unquoted(title), name, "".join(text))


def quoted(lines: list[str]) -> Verse | None:
    """A fortune of `chinese`: of the Book of Songs (title first), or with its source in the last line."""
    if lines[0].startswith("《詩經"):
        return Verse(_unquoted(lines[0]).split("‧")[-1].strip(), "", "".join(lines[1:]))
    source = ATTRIBUTION.fullmatch(lines[-1])
    if source is None:
        return None
    author, title = source["author"], SEVERAL_NAMES.sub("", source["title"])
    if not author and title in SAYINGS:
        return Verse("", "", "".join(lines[:-1]))
    if len(author) < 2 or author in NOT_TAKEN or PROSE.fullmatch(title):
        return None
    return Verse(title, author, "".join(lines[:-1]))


def without_repetitions(verses: list[Verse]) -> Iterator[Verse]:
    """Drop what repeats a clause of another: couplets of poems that are there as a whole, second versions."""
    seen: set[str] = set()
    for verse in sorted(verses, key=lambda verse: -len(verse.text)):
        if verse.clauses and not verse.clauses & seen:
            seen |= verse.clauses
            yield verse


def main() -> int:
    folder = Path(sys.argv[1]) / FOLDER
    verses = [tang_and_song(lines) for name in ("tang300", "song100") for lines in fortunes(folder / name)]
    verses += [verse for lines in fortunes(folder / "chinese") if (verse := quoted(lines))]
    tidy = [Verse(_tidy(v.title), v.author, re.sub(r"\s", "", _tidy(v.text))) for v in verses]
    clean = [verse for verse in tidy if CLEAN.fullmatch(verse.line) and verse.text and "《" not in verse.text]
    kept = sorted(without_repetitions(clean), key=lambda verse: hashlib.sha256(verse.line.encode()).digest())
    text = "".join(f"{verse.line}\n" for verse in kept)
    target = Path(__file__).with_name("verse.txt.xz")
    target.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
    print(
        f"{target}: {target.stat().st_size} bytes, {len(kept)} of {len(verses)} verses "
        f"({len(tidy) - len(clean)} not clean), {len(text)} characters, {len(set(text))} different, "
        f"SHA-256 of the text {hashlib.sha256(text.encode()).hexdigest()}"
    )
    return 0


def _unquoted(title: str) -> str:
    match = re.search(r"《(.*)》", title)
    return match[1] if match else title


def _tidy(text: str) -> str:
    """One form for the marks that the package writes in several."""
    return re.sub(r"[・‧]", "·", text.replace(",", "，").replace(".", "。"))


if __name__ == "__main__":
    sys.exit(main())
