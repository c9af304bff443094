"""Lists of a Redfish service, which may come in pages: whether all of one was told is a part of the answer."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from run_benchmarks.meters.base import UnreachableError
from run_benchmarks.meters.https import PAGE
from run_benchmarks.meters.redfish_resources import LONGEST_PATH, Collection
from utils.errors import FlagPerfError

MOST_PAGES = 64
_PAGE = re.compile(PAGE, re.ASCII)


@dataclass(frozen=True)
class Listing:
    """Where the members of a collection lie, each once. missing: why that is not all of them; empty where it is."""

    paths: tuple[str, ...]
    missing: str


def listing(get: Callable[[str], Collection], path: str, most: int) -> Listing:
    """The members of the collection at a path, page by page.

    Args:
        get: asks for a page; FlagPerfError where there is none. most: how many members are taken.

    Raises:
        FlagPerfError: the first page cannot be read, or the BMC does not answer.
    """
    page, members, count, seen = get(path), dict[str, str](), 0, {path}
    while True:
        members.update({place(link.path): link.path for link in page.members})
        count = max(count, page.count or 0)
        missing = _missing(page, len(members), count, most, seen)
        if missing or not page.next_page:
            return Listing(tuple(members.values())[:most], missing)
        seen.add(page.next_page)
        try:
            page = get(page.next_page)
        except UnreachableError:
            raise
        except FlagPerfError as error:
            return Listing(tuple(members.values()), error.message)


def place(path: str) -> str:
    """A resource's path, written in one way: with a slash at its end it is the same."""
    return path.rstrip("/")


def id_of(path: str) -> str:
    """The last part of a resource's path, which is its ID."""
    return place(path).rpartition("/")[2]


def _missing(page: Collection, listed: int, count: int, most: int, seen: set[str]) -> str:
    """Why the list ends here without all of its members; empty where it goes on, or has them all."""
    if listed > most:
        return f"it lists more than {most}"
    if not page.next_page:
        return f"it lists {listed} of {count}" if listed < count else ""
    if not _PAGE.fullmatch(page.next_page) or len(page.next_page) > LONGEST_PATH:
        return "its list goes on elsewhere: not followed"
    return "its list does not end" if page.next_page in seen or len(seen) >= MOST_PAGES else ""
