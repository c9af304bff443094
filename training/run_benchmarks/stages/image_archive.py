"""A strict look at the archive of an image while it passes: it may give a name to the one image that was asked for.

What `docker load` takes in may name any number of images, and takes those names away from the images that have them.
So whoever builds an image for the others, and is trusted with what they run in it, could replace any image of theirs.

Read is what the engines write: tar's plain headers, with numbers too large for them in headers of their own. Anything
that readers of archives may understand in several ways (long names, links in the place of files) is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Iterator
from pathlib import PurePosixPath
from typing import Any

from run_benchmarks.stages.plain_tar import BLOCK
from utils.errors import FlagPerfError
from utils.text_files import one_line, shortened

FILE, SYMLINK, FOLDER, EXTENDED = b"0", b"2", b"5", b"x"
LARGEST_READ = 2**20  # bytes of a file that is read: they name an image and its layers
LONGEST_NAMES = 200  # characters
# What a header of its own may say of the next file: nothing that changes what it is called.
EXTENDED_KEYS = {"size", "mtime", "atime", "ctime", "uid", "gid", "uname", "gname"}
# Whose names an engine may give to an image that was asked for without one.
REGISTRIES = ("", "docker.io/", "docker.io/library/", "localhost/")
NAME_KEYS = ("io.containerd.image.name", "org.opencontainers.image.ref.name")


class ImageArchiveError(FlagPerfError):
    """The archive names another image, or is none that an engine writes."""


class ImageArchive:
    """Looks at the archive of the image `tag`, part by part, before it is passed on.

    Raises (each of its methods):
        ImageArchiveError: what has come is not to be passed on.
    """

    def __init__(self, tag: str) -> None:
        self._names = {registry + tag for registry in REGISTRIES}
        self._version = tag.rpartition(":")[2]
        self._part = bytearray()
        self._ended = False
        self._members = self._read()
        self._wanted, self._skip = next(self._members)

    def take(self, chunk: bytes) -> None:
        """The next part of the archive."""
        at = 0
        while at < len(chunk):
            skipped = min(self._skip, len(chunk) - at)
            self._skip -= skipped
            at += skipped
            part = chunk[at : at + self._wanted - len(self._part)] if not self._skip else b""
            self._part += part
            at += len(part)
            if len(self._part) == self._wanted:
                whole, self._part = bytes(self._part), bytearray()
                self._wanted, self._skip = self._members.send(whole)

    def end(self) -> None:
        """There is no more of it."""
        if not self._ended:
            raise _refused("it was cut off")

    def _read(self) -> Generator[tuple[int, int], bytes, None]:
        """Yields how many bytes it wants, behind so many that it does not, and gets them."""
        skip, extended = 0, None
        while (block := (yield BLOCK, skip)).strip(b"\0"):
            name, kind, size = _header(block)
            if extended is not None:
                if kind != FILE:
                    raise _refused(f"{name!r} is no file, and has a size")
                size, extended = extended, None
            skip = size + -size % BLOCK
            if kind == EXTENDED or (kind == FILE and name in INDEXES):
                if size > LARGEST_READ:
                    raise _refused(f"{name!r} has {size} bytes")
                # to its last byte before any of that is passed on: what fills its block tells nothing
                content = yield size, 0
                skip -= size
                if kind == EXTENDED:
                    extended = _size_in(content)
                else:
                    self._check(name, content)
        self._ended = True
        while True:
            if (yield BLOCK, 0).strip(b"\0"):
                raise _refused("it goes on behind its end")

    def _check(self, index: str, content: bytes) -> None:
        try:
            names = set(INDEXES[index](json.loads(content, object_pairs_hook=_Object)))
        except (ValueError, TypeError, RecursionError) as error:
            raise _refused(f"its {index} is not to be read") from error
        others = names - self._names - ({self._version} if index == "index.json" else set())
        if others:
            named = one_line(shortened(", ".join(map(str, others)), LONGEST_NAMES))
            raise ImageArchiveError(f"the archive would replace another image: it names {named}")


class _Object(tuple[tuple[str, Any], ...]):
    """An object of JSON with all its keys, also where several are alike or differ by their case alone."""


def _pairs(value: object) -> Iterator[tuple[str, Any]]:
    """The keys of all objects at any depth, in small letters (engines tell none apart), and what they hold."""
    for item in value if isinstance(value, (_Object, list)) else ():
        if isinstance(value, _Object):
            yield item[0].casefold(), item[1]
        yield from _pairs(item[1] if isinstance(value, _Object) else item)


def _in_manifest(content: object) -> Iterator[str]:
    for key, tags in _pairs(content):
        if key == "repotags":
            yield from tags or ()


def _in_repositories(content: object) -> Iterator[str]:
    if not isinstance(content, _Object):
        raise TypeError("it is no object")
    for repository, tags in content:
        for version, _ in tags:
            yield f"{repository}:{version}"


def _in_index(content: object) -> Iterator[str]:
    return (name for key, name in _pairs(content) if key in NAME_KEYS)


# The files that name images, wherever they lie: a link to a folder may lead there.
INDEXES: dict[str, Callable[[object], Iterator[str]]] = {
    "manifest.json": _in_manifest,
    "repositories": _in_repositories,
    "index.json": _in_index,
}


def _header(block: bytes) -> tuple[str, bytes, int]:
    """The name without its folders, the kind and the size of what a header announces."""
    name, kind, digits = block[:100].rstrip(b"\0").decode("latin-1"), block[156:157], block[124:136]
    path = PurePosixPath(name)
    # an engine takes an archive that begins otherwise for a compressed one
    plain = (
        name.isascii() and name.isprintable() and ".." not in path.parts and not block[345:500].strip(b"\0")
    )
    size = re.fullmatch(rb"([0-7]+)[\0 ]*", digits)
    if not (plain and (path.name or kind == FOLDER) and size and kind in (FILE, SYMLINK, FOLDER, EXTENDED)):
        raise _refused(f"it holds what no engine writes: {name[:LONGEST_NAMES]!r}")
    bytes_in = int(size[1], 8)
    if kind in (SYMLINK, FOLDER) and (bytes_in or path.name in INDEXES):
        raise _refused(f"{name!r} is no file")
    return path.name, kind, bytes_in


def _size_in(records: bytes) -> int | None:
    """What a header of its own says of the next file's size: records of `LENGTH KEY=VALUE`."""
    size = None
    while records:
        match = re.match(rb"([0-9]{1,4}) ([a-z]+)=([^\n\0]*)\n", records)
        if not match or match.end() != int(match[1]) or match[2].decode() not in EXTENDED_KEYS:
            raise _refused(f"it holds what no engine writes: {records[:LONGEST_NAMES]!r}")
        if match[2] == b"size":
            if size is not None or not re.fullmatch(rb"[0-9]{1,18}", match[3]):
                raise _refused("a file has no size, or two")
            size = int(match[3])
        records = records[match.end() :]
    return size


def _refused(why: str) -> ImageArchiveError:
    return ImageArchiveError(f"the archive of the image is not passed on: {why}")
