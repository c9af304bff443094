"""Reading text: UTF-8, one sentence a line, a blank line between documents. Errors name file and line."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
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


def beginnings(
    paths: Sequence[Path], characters: int, pieces: Callable[[Path], Iterator[str]]
) -> Iterator[str]:
    """The first of each file's `pieces`, as many of each file, about `characters` in all."""
    for path in paths:
        left = characters // len(paths)
        for piece in pieces(path):
            if left <= 0:
                break
            left -= len(piece)
            yield piece


def deal(
    documents: Iterable[str], parts: Sequence[Path], held_out: Path | None, every: int, *, first: int = 0
) -> tuple[int, int]:
    """Write the documents of a text to its parts in turn, so that each part is a sample of the whole.

    Args:
        documents: each as it is written.
        parts: the files.
        held_out: that for every `every`-th document.
        every: 0: none is held out.
        first: the part that has the first document.

    Returns:
        How many were dealt to the parts, and how many held out.
    """
    dealt = kept = 0
    with ExitStack() as stack:
        paths = parts if held_out is None else [*parts, held_out]
        streams = [stack.enter_context(path.open("w", encoding="utf-8", newline="")) for path in paths]
        for number, document in enumerate(documents, start=1):
            is_held_out = every > 0 and number % every == 0
            streams[-1 if is_held_out else (first + dealt) % len(parts)].write(document)
            dealt, kept = dealt + (not is_held_out), kept + is_held_out
    return dealt, kept


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
