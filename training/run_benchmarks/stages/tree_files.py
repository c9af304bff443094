"""What of a folder the hosts get: how it is walked, which links are followed, and what no host could get."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from utils.errors import FlagPerfError, Problem
from utils.text_files import shortened

# Hidden files are the editor's and the tools', but this one is read by the engine where the image is built.
KEPT_HIDDEN = frozenset({".dockerignore"})
# What is walked, the hidden and what links lead to included: a folder of N files is N paths behind each link to it.
MOST_PATHS = 100_000
# Characters of the paths, and of those that links lead to: looking at one costs time and memory with its length.
MOST_TEXT = 8 * 2**20
_LONGEST_PATH = 200  # characters of one in an error


def files_in(folder: Path, left_out: Collection[Path] = ()) -> Iterator[Path]:
    """The files that a host would get of `folder`, in a fixed order; see `problems_in` for what cannot be had.

    Raises:
        FlagPerfError: it holds far more than code, or what was there is gone.
    """
    return filter(Path.is_file, _Walk(folder, left_out).paths())


def problems_in(folder: Path, left_out: Collection[Path] = ()) -> list[Problem]:
    """What of `folder` no host could get, and why.

    Raises:
        FlagPerfError: as `files_in`.
    """
    problems, walk = [], _Walk(folder, left_out)
    paths = list(walk.paths())
    of_home = _of_home(paths, folder)
    for path in paths:
        objection = of_home.get(path) or _objection(path, is_astray=path in walk.astray)
        if objection is not None:
            name = os.fsencode(path.relative_to(folder)).decode(errors="backslashreplace")
            problems.append(Problem(str(folder), name, "", *objection))
    return problems


def not_packed(path: Path, error: OSError) -> FlagPerfError:
    """Of a file that became shorter tarfile says "unexpected end of data", and not which."""
    return FlagPerfError(
        f"cannot be packed: {error.strerror or error}",
        where=str(path),
        remedy="start again when nothing alters the training/ folder: results, data and caches belong elsewhere",
    )


class _Walk:
    """Goes through a folder once, and counts. Links are followed to what hosts get anyway, and to nothing else."""

    def __init__(self, folder: Path, left_out: Collection[Path]) -> None:
        self.astray: set[Path] = set()  # links that lead to what hosts do not get, or in a circle
        self._folder, self._left_out = folder, frozenset(left_out)
        self._root = Path(os.path.realpath(folder))
        self._at_home = {os.path.realpath(path) for path in left_out}
        self._number = self._text = 0
        self._listed_in: Counter[tuple[str, ...]] = Counter()  # by the first two folders that hold them

    def paths(self) -> Iterator[Path]:
        """What a host gets, folders before what is in them, in a fixed order.

        Raises:
            FlagPerfError: there is far too much, what was there is gone, or lies deeper than a path can be long.
        """
        path = self._folder
        try:
            waiting = self._inside(path, is_linked=False)
            while waiting:  # no recursion: folders may lie deeper than Python's calls
                path, is_linked = waiting.pop()
                if path in self._left_out or not _belongs_to_tree(path.name):
                    continue
                is_link = path.is_symlink()
                if is_link and (is_linked or not self._leads_within(path)):
                    self.astray.add(path)
                yield path
                if path not in self.astray and path.is_dir() and os.access(path, os.R_OK | os.X_OK):
                    waiting += self._inside(path, is_linked=is_linked or is_link)
        except OSError as error:
            raise not_packed(path, error) from error

    def _inside(self, folder: Path, *, is_linked: bool) -> list[tuple[Path, bool]]:
        """What is in a folder, the last first, and whether a link led there."""
        below, paths = folder.relative_to(self._folder), list(islice(folder.iterdir(), MOST_PATHS + 1))
        self._listed_in[below.parts[:2]] += len(paths)
        text = sum(len(path.name) for path in paths) + len(paths) * len(str(below))
        self._count(folder, len(paths), text)
        return [(path, is_linked) for path in sorted(paths, reverse=True)]

    def _count(self, path: Path, number: int, text: int) -> None:
        self._number, self._text = self._number + number, self._text + text
        if self._number <= MOST_PATHS and self._text <= MOST_TEXT:
            return
        ((most, _),) = self._listed_in.most_common(1)
        among = shortened(str(path), _LONGEST_PATH)
        raise FlagPerfError(
            f"most of more than {MOST_PATHS} files and folders lies here, or of more than {MOST_TEXT >> 20} MiB of "
            f"their paths; what a link leads to counts again; {among} is among it",
            where=str(self._folder.joinpath(*most)),
            remedy="move data sets elsewhere, and take away links that lead to large folders",
        )

    def _leads_within(self, link: Path) -> bool:
        """Whether a link leads to what hosts get anyway: neither to what stays at home nor in a circle."""
        try:
            target = _target_of(link)
        except OSError:  # it leads nowhere, or to itself
            return False
        self._count(link, 0, len(target))
        parent = str(self._root / link.parent.relative_to(self._folder))
        if not target.startswith(f"{self._root}/") or f"{parent}/".startswith(f"{target}/"):
            return False
        place = str(self._root)
        for name in target.removeprefix(f"{self._root}/").split("/"):
            place = f"{place}/{name}"
            if place in self._at_home or not _belongs_to_tree(name):
                return False
        return True


def _target_of(link: Path) -> str:
    """Where a link leads in the end, as the kernel sees it: Python looks at each folder on the way, from the root."""
    place = os.open(link, os.O_PATH)
    try:
        return str(Path(f"/proc/self/fd/{place}").readlink())
    finally:
        os.close(place)


def _belongs_to_tree(name: str) -> bool:
    if name in KEPT_HIDDEN:
        return True
    return not name.startswith(".") and name != "__pycache__" and not name.endswith(".pyc")


def _of_home(paths: Collection[Path], folder: Path) -> dict[Path, tuple[str, str]]:
    """Those that are another name of a file which stays at home, and so would bring along what it holds."""
    linked = {path: inode for path in paths if (inode := _shared_inode(path))}
    if not linked:
        return {}
    going = set(paths)
    others = (path for path in _everything_in(folder) if path not in going)
    at_home = {inode: path for path in others if (inode := _shared_inode(path))}
    return {
        path: (f"is a hard link to what hosts do not get, {at_home[inode]}", "take it away, or copy the file")
        for path, inode in linked.items()
        if inode in at_home
    }


def _everything_in(folder: Path) -> Iterator[Path]:
    """What lies in a folder and in those in it, hidden or not; not by recursion, as os.walk does it."""
    waiting = [folder]
    while waiting:
        with suppress(OSError):  # who may not read it, or finds it gone, brings nothing of it along
            for path in waiting.pop().iterdir():
                yield path
                waiting += [path] if path.is_dir() and not path.is_symlink() else []


def _shared_inode(path: Path) -> tuple[int, int] | None:
    """Of a file that has more than one name, and something in it."""
    try:
        status = path.stat()
    except OSError:  # who reads it will say so
        return None
    shared = stat.S_ISREG(status.st_mode) and status.st_nlink > 1 and status.st_size > 0
    return (status.st_dev, status.st_ino) if shared else None


def _objection(path: Path, *, is_astray: bool) -> tuple[str, str] | None:
    """What forbids to pack a path, and the remedy; None where nothing does."""
    if is_astray:
        return (
            "is a link to what hosts do not get, or in a circle",
            "put the file or folder itself there, or take the link away",
        )
    try:
        path.name.encode()
    except UnicodeEncodeError:
        return "its name is not UTF-8, which hosts would read in different ways", "rename it"
    if not os.access(path, os.R_OK | (os.X_OK if path.is_dir() else 0)):
        return (
            "may not be read, and so cannot be brought to the hosts",
            "allow it to this user, or move it away",
        )
    return None
