"""Reading text: documents, and errors that name file and line."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.common.preparation import text
from utils.errors import FlagPerfError


def test_blank_lines_part_documents_and_lines_are_stripped(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"\n\n one \r\ntwo\n \t \n\nthree\xc2\xa0\nfour")
    assert list(text.documents(path)) == [["one", "two"], ["three", "four"]]


@pytest.mark.parametrize(
    ("suffix", "compress"), [(".xz", lzma.compress), (".gz", gzip.compress), (".bz2", bz2.compress)]
)
def test_compressed_text_is_read_and_a_truncated_file_is_named(
    tmp_path: Path, suffix: str, compress: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / f"text{suffix}"
    packed = compress("".join(f"sentence {i} é\n" for i in range(5000)).encode())
    path.write_bytes(packed)
    assert sum(1 for _ in text.sentences(path)) == 5000
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(FlagPerfError, match=r"cannot be read after line \d+") as error:
        list(text.sentences(path))
    assert error.value.where == str(path)


@pytest.mark.parametrize(
    ("content", "line", "why"),
    [
        (b"good\ngood\ncaf\xe9 bad\n", 3, "not UTF-8: byte 0xe9 at column 4"),
        ("two\nlines\n".encode("utf-16-le"), 1, "NUL byte"),
        (b"good\n\0\n", 2, "NUL byte"),
    ],
)
def test_what_is_no_utf8_text_is_named_by_line(tmp_path: Path, content: bytes, line: int, why: str) -> None:
    path = tmp_path / "text"
    path.write_bytes(content)
    with pytest.raises(FlagPerfError, match=why) as error:
        list(text.documents(path))
    assert error.value.where == f"{path}, line {line}"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FlagPerfError, match="No such file") as error:
        list(text.documents(tmp_path / "absent"))
    assert error.value.where == str(tmp_path / "absent")


def test_lines_are_given_as_they_are_with_their_newline(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b" one \r\n\ntwo\xe2\x80\xa8still two\nlast")
    assert list(text.lines(path)) == [" one \n", "\n", "two\u2028still two\n", "last"]
