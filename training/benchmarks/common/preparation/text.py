"""Reading text: UTF-8, one sentence a line, a blank line between documents. Errors name file and line."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from utils.errors import FlagPerfError

Document = list[str]
_OPENERS: dict[str, Callable[[Path], Any]] = {".xz": lzma.open, ".gz": gzip.open, ".bz2": bz2.open}


def documents(path: Path) -> Iterator[Document]:
    """The non-empty documents of a text file (plain, .xz, .gz or .bz2), as lists of stripped sentences."""
    document: Document = []
    for sentence in sentences(path):
        if sentence:
            document.append(sentence)
        elif document:
            yield document
            document = []
    if document:
        yield document


def sentences(path: Path) -> Iterator[str]:
    """The stripped lines of a text file; an empty one ends a document."""
    return (line.strip() for line in lines(path))


def lines(path: Path) -> Iterator[str]:
    """The lines of a text file as they are, each with the newline that ends it; "\\r\\n" is read as one."""
    number = 0
    try:
        with _open(path) as stream:
            for raw in stream:
                number += 1
                yield _decoded(raw, f"{path}, line {number}").replace("\r\n", "\n")
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise FlagPerfError(
            f"cannot be read after line {number}: {error}", where=str(path), remedy="get the file again"
        ) from None


def _open(path: Path) -> BinaryIO:
    opener = _OPENERS.get(path.suffix)
    return cast(BinaryIO, opener(path)) if opener else path.open("rb")


def _decoded(raw: bytes, where: str) -> str:
    if b"\0" in raw:
        raise FlagPerfError(
            "a NUL byte: this is UTF-16 or no text at all",
            where=where,
            remedy="convert it: iconv -f UTF-16 -t UTF-8",
        )
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FlagPerfError(
            f"not UTF-8: byte {raw[error.start]:#04x} at column {error.start + 1}",
            where=where,
            remedy="convert it: iconv -f ENCODING -t UTF-8",
        ) from None
