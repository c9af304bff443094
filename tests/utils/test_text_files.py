"""Text of strangers: a line without an end does not fill the memory, and none steers a terminal."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from utils import text_files
from utils.errors import FlagPerfError
from utils.text_files import (
    LARGEST_LOG,
    LONGEST_LINE,
    continued,
    last_lines_of,
    lines_of,
    marked_lines_of,
    matching,
    one_line,
    printable,
)


def test_a_line_longer_than_the_longest_comes_in_parts(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("x" * (LONGEST_LINE + 5) + "\nlast")
    assert [len(line) for line in lines_of(tmp_path / "log")] == [LONGEST_LINE, 6, 4]


@pytest.mark.parametrize("read", [lambda path: next(lines_of(path), ""), last_lines_of], ids=["all", "end"])
def test_what_leads_elsewhere_or_has_no_end_is_not_opened(
    read: Callable[[Path], object], tmp_path: Path
) -> None:
    """A log that was a link showed /etc/shadow; one of 8 TiB without content was read for hours."""
    (tmp_path / "secret").write_text("root:x")
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "sparse").touch()
    os.truncate(tmp_path / "sparse", LARGEST_LOG + 1)
    reasons = {
        "link": "is no file, but a link, which is not followed",
        "pipe": "is no file",
        "folder": "is no file",
        "sparse": "is larger than 4294967296 bytes",
    }
    for name, reason in reasons.items():
        with pytest.raises(FlagPerfError, match=reason):
            read(tmp_path / name)


@pytest.mark.parametrize("block", [1, 3, 7, 2**22])
def test_lines_with_a_mark_are_cut_out_however_the_file_is_read(
    block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "\n\nno\nrank 0: <>one\n<>two\rbar <>three <>same\r\n<\n>\nx<<>>\n<>last"
    (tmp_path / "log").write_bytes(text.encode())
    monkeypatch.setattr(text_files, "_BLOCK", block)
    lines = ["<>one\n", "<>two\r", "<>three <>same\r", "<>>\n", "<>last"]
    seen = list(marked_lines_of(tmp_path / "log", "<>", b"([a-z]+)"))
    assert [line.decode() for _, _, line in seen] == lines
    assert [follows for _, follows, _ in seen] == [b"one", b"two", b"three", None, b"last"]
    places = [place for place, _, _ in seen]
    assert [text[place : place + 3] for place in places] == [line[:3] for line in lines]
    last = list(marked_lines_of(tmp_path / "log", "<>", last=len("<>>\n<>last")))
    assert [(place, line) for place, _, line in last] == [(places[3], b"<>>\n"), (places[4], b"<>last")]


def test_a_marked_line_longer_than_the_longest_is_cut(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("<>" + "x" * LONGEST_LINE + "<>more\n<>next\n")
    lines = [line for _, _, line in marked_lines_of(tmp_path / "log", "<>")]
    assert [len(lines[0]), *lines[1:]] == [LONGEST_LINE, b"<>more\n", b"<>next\n"]


# Titles, the clipboard, links, C1 controls, directions, zero width, what is no character, and blanks that are none.
STEERING = (
    "\x1b\x07\x08\r\x0b\x0c\x7f\x85\x9b\x9d\u202e\u2066\u200b\u200d\ufeff\u2028\u2029\ud800\u00a0\u2800\u3164"
)


@pytest.mark.parametrize("char", STEERING)
def test_what_steers_a_terminal_or_hides_is_replaced(char: str) -> None:
    assert printable(f"a{char}b") == one_line(f"a{char}b") == "a\ufffdb"


def test_what_is_seen_stays() -> None:
    text = "Ü 漢字 🙂 -> | `x`"
    assert printable(f"{text}\n\t{text}") == f"{text}\n\t{text}"
    assert one_line(f"{text}\n\t{text}") == f"{text} {text}"
    assert continued("a\nb\n\nc", "  ") == "a\n  b\n  \n  c"


@given(st.text())
@settings(derandomize=True, max_examples=300)
def test_no_text_steers_a_terminal_or_begins_a_line_of_its_own(text: str) -> None:
    line = one_line(text)
    assert line.isprintable() and len(line) == len(text)
    assert printable(text).replace("\n", "").replace("\t", "").isprintable()
    _, *others = continued(text).splitlines() or [""]
    assert all(other.startswith("    ") for other in others)


def test_a_text_of_any_length_is_broken_into_lines() -> None:
    """Six megabytes of a figure's caveat took textwrap a quarter of a minute."""
    lines = text_files.filled("word " * 10**6, 80, "  ").splitlines()
    assert max(map(len, lines)) <= 80 and lines[1].startswith("  word")
    assert lines[-1].endswith("(5000000 characters in all)")


def test_a_folder_that_goes_away_while_it_is_searched_has_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rank0.out.log").touch()
    assert matching(tmp_path, "rank*.log") == [tmp_path / "rank0.out.log"]

    def gone(*_: object, **__: object) -> None:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr("os.scandir", gone)
    monkeypatch.setattr("os.listdir", gone)
    assert matching(tmp_path, "*/*") == []
