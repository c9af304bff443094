"""Which processes there are on this machine, in whatever namespace."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def pids_with(mark: str) -> list[int]:
    """The live processes that have `mark` on their command line."""
    pids = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "cmdline").read_bytes():
                pids.append(int(folder.name))
        except OSError:  # it has ended meanwhile
            continue
    return pids


@contextmanager
def argvs_meanwhile() -> Iterator[set[str]]:
    """The command lines of all processes that are seen as long as the context lasts."""
    argvs: set[str] = set()
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.02):
            for folder in Path("/proc").glob("[0-9]*"):
                try:
                    argvs.add((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
                except OSError:  # it has ended meanwhile
                    continue

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield argvs
    finally:
        over.set()
        watching.join()
