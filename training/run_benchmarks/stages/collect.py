"""Bring each node's folder back to the controller: what a task left there is data, and nothing of it is trusted.

The host lists it, what comes is decided here, and it comes as a stream that is verified by checksums. What is too large
or cannot be read is left out and named, and the rest is kept.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from run_benchmarks.stages.collect_listing import (
    DEEPEST,
    LIST,
    NOT_THERE,
    REST,
    TOP,
    Entry,
    LeftOut,
    choose,
    is_cut,
    read_listing,
)
from run_benchmarks.stages.collect_stream import OVERHEAD, SEND, SOME_FAILED, unpack
from run_benchmarks.transports.base import CommandTimeoutError, Transport
from utils.errors import FlagPerfError

ATTEMPTS = 3
PAUSE_S = 0.5
GROWTH = 16 * 2**20  # bytes: a log whose writer could not be stopped still grows while it is read
ALTERED = "it changes while it is read, or was altered on its way"
LATE = "there was no time left for it"
SHORTEST_S = 1.0  # what a command is given that begins at the end of the time


async def collect_folder(
    transport: Transport, work: str, folder: str, target: Path, timeout: float
) -> tuple[LeftOut, ...] | None:
    """Copy `folder`, below the work folder `work` of the host, to `target`, which appears at once or not at all.

    Args:
        timeout: seconds, for all of it. Where they are over, what lies in folders of it is left out.

    Returns:
        What was left out; None where the host has no such folder.

    Raises:
        FlagPerfError: it could not be brought back; it still lies on the host.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # A leading dot: a reader of the result tree never takes a half-collected folder for a result.
        with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as scratch:
            content = Path(scratch) / "content"
            content.mkdir()
            left_out = await _Collection(transport, work, folder, content, timeout).bring()
            if left_out is not None:
                content.replace(target)
            return left_out
    except OSError as error:
        reason, where = f"it cannot be written here: {error}", str(target)
    except FlagPerfError as error:
        reason, where = error.message, transport.host
    remedy = f"they still lie on {transport.host} in {work}/{folder}"
    raise FlagPerfError(f"the logs were not collected: {reason}", where=where, remedy=remedy)


class _Collection:
    """A folder on its way to `content`. Each attempt lists it anew, and fetches what has not arrived yet."""

    def __init__(self, transport: Transport, work: str, folder: str, content: Path, timeout: float) -> None:
        self._transport, self._work, self._folder = transport, work, folder
        self._content, self._until = content, asyncio.get_running_loop().time() + timeout
        self._arrived: set[str] = set()

    async def bring(self) -> tuple[LeftOut, ...] | None:
        """What was left out, after as many attempts as it takes or are allowed; None where there is no folder."""
        attempt = 1
        while True:
            try:
                entries = await self._list()
                if entries is None:
                    return None
                sizes, left_out = choose(entries)
                missing = await self._fetch_all(sizes)
                if not missing or attempt == ATTEMPTS or self._is_late():
                    why = LATE if self._is_late() else ALTERED
                    return (*left_out, *(LeftOut(path, why) for path in missing))
            except FlagPerfError:
                if attempt == ATTEMPTS or self._is_late():
                    raise
            await asyncio.sleep(PAUSE_S * attempt)
            attempt += 1

    def _left_s(self) -> float:
        """How long a command may take that begins now."""
        return max(SHORTEST_S, self._until - asyncio.get_running_loop().time())

    def _is_late(self) -> bool:
        return self._left_s() <= SHORTEST_S

    async def _list(self) -> list[Entry] | None:
        rest: list[Entry] = []
        for depth in (DEEPEST, TOP):  # logs lie at the top; what a case floods with files rarely does
            argv = ("sh", "-c", LIST, self._work, self._folder, str(depth))
            listed = await self._transport.run(argv, timeout=self._left_s())
            if listed.returncode == NOT_THERE:
                return None
            if not listed.ok:
                raise FlagPerfError(listed.last_lines(1))
            if not is_cut(listed.stdout):
                break
            rest = [Entry(REST, 0, "the rest")]
        return [*read_listing(listed.stdout), *rest]

    async def _fetch_all(self, sizes: Mapping[str, int]) -> list[str]:
        """Fetch what has not arrived, a folder after the other; the paths of those that did not arrive now either."""
        folders: dict[str, dict[str, int]] = {
            ".": {}
        }  # asked even where nothing lies in it: a plan shows how
        for path, size in sizes.items():
            if path not in self._arrived:
                folders.setdefault(str(PurePosixPath(path).parent), {})[PurePosixPath(path).name] = size
        for folder, by_name in folders.items():
            try:
                whole = await self._fetch(folder, by_name)
            except CommandTimeoutError:
                if folder == ".":  # logs lie there
                    raise
                break
            self._arrived |= {str(PurePosixPath(folder, name)) for name in whole}
        return [path for path in sizes if path not in self._arrived]

    async def _fetch(self, folder: str, sizes: Mapping[str, int]) -> set[str]:
        """Fetch files of one folder, name -> size; the names of those that have arrived whole."""
        argv = ("sh", "-c", SEND, self._work, str(PurePosixPath(self._folder, folder)))
        names = "".join(f"./{name}\0" for name in sizes).encode()
        target = self._content / folder
        target.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=self._content.parent) as stream:
            bounded = _Bounded(stream, GROWTH + sum(sizes.values()) + len(sizes) * OVERHEAD)
            done = await self._transport.run(argv, stdin=names, stdout=bounded.write, timeout=self._left_s())
            if done.returncode not in (0, SOME_FAILED):
                raise FlagPerfError(f"exit code {done.returncode}: {done.last_lines(1)}")
            stream.seek(0)
            largest = {name: size + GROWTH for name, size in sizes.items()}
            return await asyncio.to_thread(unpack, stream, target, largest)


class _Bounded:
    """A file that takes no more than `most` bytes: who sends more is stopped."""

    def __init__(self, file: BinaryIO, most: int) -> None:
        self._file, self._most = file, most

    async def write(self, chunk: bytes) -> None:
        """The next part of a stream."""
        if self._file.tell() + len(chunk) > self._most:
            raise FlagPerfError("more comes than was listed")
        self._file.write(chunk)
