"""Bring each node's folder back to the controller: what a task left there is data, and nothing of it is trusted.

The host lists it, what comes is decided here, and it comes as a stream that is verified by checksums. What is too large
or cannot be read is left out and named, and the rest is kept.
"""

from __future__ import annotations

import asyncio
import glob
import os
import shutil
import tempfile
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from run_benchmarks.full_disk import NoRoomError, unwritable
from run_benchmarks.stages.collect_listing import (
    DEEPEST,
    FIRST,
    LARGEST_LISTING,
    LIST,
    NOT_THERE,
    REST,
    TOP,
    Entry,
    LeftOut,
    Room,
    Stream,
    choose,
    is_cut,
    largest,
    own_names,
    read_listing,
    streams_of,
)
from run_benchmarks.stages.collect_stream import (
    END_SIZE,
    OVERHEAD,
    SEND,
    SEND_ENDS,
    SOME_FAILED,
    SUM_LINE,
    unpack,
    unpack_ends,
)
from run_benchmarks.transports.base import CommandTimeoutError, Transport, TransportError
from utils.errors import FlagPerfError

ATTEMPTS = 3
PAUSE_S = 0.5
GROWTH = 16 * 2**20  # bytes: a log whose writer could not be stopped still grows while it is read
ALTERED = "it changes while it is read, or was altered on its way"
GO_WITH_IT = "they go with it, once it is given back; what was followed of rank 0 is in the round's folder"
LATE = "there was no time left for it"
SHORTEST_S = 1.0  # what a command is given that begins at the end of the time


async def collect_folder(
    transport: Transport,
    work: str,
    folder: str,
    target: Path,
    timeout: float,
    sharing: int = 1,
    *,
    own_logs: Collection[str] = FIRST,
    is_again: bool = False,
    near: Transport | None = None,
) -> tuple[LeftOut, ...] | None:
    """Copy `folder`, below the work folder `work` of the host, to `target`, which appears at once or not at all.

    Args:
        timeout: seconds, for all of it. Where they are over, what lies in folders of it is left out.
        sharing: how many folders come at once, and share the controller's disk.
        own_logs: see `Node.own_logs`.
        is_again: it may be there already, from a controller that died before it could say what was left out.
        near: reads the same files without the host, where this machine sees them; what is not all there by it comes
            from the host.

    Returns:
        What was left out; None where the host has no such folder.

    Raises:
        FlagPerfError: it could not be brought back, and still lies on the host; NoRoomError: for want of room here.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        for cut_off in target.parent.glob(f".{glob.escape(target.name)}.*"):  # by the end of a controller
            shutil.rmtree(cut_off)
        # A leading dot: a reader of the result tree never takes a half-collected folder for a result.
        with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as scratch:
            content = Path(scratch) / "content"
            content.mkdir()
            room = Room(0, 0, sharing, own_logs)
            left_out = await _Collection(transport, work, folder, content, timeout, room, near).bring()
            if left_out is not None:
                if is_again and target.is_dir():
                    target.replace(Path(scratch) / "earlier")
                content.replace(target)
            return left_out
    except OSError as error:
        cause, where = unwritable(error), str(target)
    except FlagPerfError as error:
        cause, where = error, transport.host
    remedy = f"they still lie on {transport.host} in {work}/{folder}" if transport.keeps else GO_WITH_IT
    kind = NoRoomError if isinstance(cause, NoRoomError) else FlagPerfError
    raise kind(f"the logs were not collected: {cause.message}", where=where, remedy=remedy)


class _Collection:
    """A folder on its way to `content`. Each attempt lists it anew, and fetches what has not arrived yet."""

    def __init__(
        self,
        transport: Transport,
        work: str,
        folder: str,
        content: Path,
        timeout: float,
        room: Room,
        near: Transport | None,
    ) -> None:
        self._transport, self._work, self._folder = transport, work, folder
        self._near = near
        self._content, self._until = content, asyncio.get_running_loop().time() + timeout
        self._timeout = timeout
        self._room = room  # as it is when the folder is listed, ...
        self._taken = 0  # ... and bytes that the streams take of it, with what came beyond what was listed
        self._arrived: set[str] = set()
        self._left_out: list[LeftOut] = []
        self._missing: dict[str, str] = {}  # path -> why it has not arrived
        self._error: FlagPerfError | None = None

    async def bring(self) -> tuple[LeftOut, ...] | None:
        """What was left out, after as many attempts as it takes or are allowed; None where there is no folder.

        Raises:
            FlagPerfError: nothing has arrived, and this is why.
        """
        lost: TransportError | None = None
        for attempt in range(ATTEMPTS):
            await asyncio.sleep(PAUSE_S * attempt)
            self._error = None
            try:
                streams = await self._list()
                if streams is None:
                    return None
                await self._fetch_all(streams)
            except CommandTimeoutError as error:
                # what was to be done in that time is no concern of the user's
                late = FlagPerfError(f"not done within {self._timeout:g} s", where=error.where)
                self._error = lost or late
            except TransportError as error:
                self._error = lost = error
            except FlagPerfError as error:
                self._error = error
            if self._is_late() or not (self._missing or self._error):
                break
            self._near = None
        if self._error and not self._arrived:
            raise self._error
        full, own = isinstance(self._error, NoRoomError), self._room.is_own
        missing = [LeftOut(path, why, True, full, full and own(path)) for path, why in self._missing.items()]
        return (*self._left_out, *missing)

    def _left_s(self) -> float:
        """How long a command may take that begins now."""
        return max(SHORTEST_S, self._until - asyncio.get_running_loop().time())

    def _is_late(self) -> bool:
        return self._left_s() <= SHORTEST_S

    async def _list(self) -> list[Stream] | None:
        """The streams that are to come; None where there is no folder."""
        rest: list[Entry] = []
        for depth in (DEEPEST, TOP):  # logs lie at the top; what a case floods with files rarely does
            argv = ("sh", "-c", LIST, self._work, self._folder, str(depth), *own_names(self._room.own_logs))
            listed = await self._transport.run(argv, timeout=self._left_s(), held=LARGEST_LISTING)
            if listed.returncode == NOT_THERE:
                return None
            if not listed.ok:
                raise FlagPerfError(listed.last_lines(1))
            if not is_cut(listed.stdout):
                break
            rest = [Entry(REST, 0, "the rest")]
        # in a thread: a list may have half a million entries, and meanwhile other hosts are to be heard
        return await asyncio.to_thread(self._planned, listed.stdout, rest)

    def _planned(self, listing: str, rest: Iterable[Entry]) -> list[Stream]:
        """The streams for what is chosen of a list and has not arrived; what has no room here is left out."""
        sizes, left_out = choose([*read_listing(listing), *rest], self._room.own_logs)
        self._left_out = [*left_out]
        wanted = {path: size for path, size in sizes.items() if path not in self._arrived}
        disk = shutil.disk_usage(self._content)
        self._room = room = replace(self._room, free=disk.free, total=disk.total)
        streams, no_room = streams_of(wanted, room)
        totals = [stream.total for stream in streams]
        self._taken = sum(totals) + max(totals)  # a stream lies beside what is unpacked from it
        why = f"no room for it on the controller, whose disk has {disk.free >> 20} MiB free"
        for path in no_room:
            kept = room.kept(path, min(wanted[path], largest(path))) >> 20
            of_which = f", of which {kept} are kept for later rounds" if kept else ""
            self._left_out.append(LeftOut(path, f"{why}{of_which}", has_no_room=True))
        self._missing = {path: LATE for stream in streams for path in stream.paths()}
        return streams

    async def _fetch_all(self, streams: Iterable[Stream]) -> None:
        """Fetch a stream after the other; what goes wrong with one costs no other, but for a host that is lost.

        Raises:
            TransportError, CommandTimeoutError: none of the rest can come now.
        """
        for stream in streams:
            try:
                whole, why = await self._fetch(stream), ALTERED
            except CommandTimeoutError:
                raise
            except TransportError as error:
                self._missing = dict.fromkeys(self._missing, error.message)
                raise
            except FlagPerfError as error:
                whole, why, self._error = set(), error.message, error
            for name, path in zip(stream.sizes, stream.paths(), strict=True):
                if name in whole:
                    self._arrived.add(path)
                    del self._missing[path]
                else:
                    self._missing[path] = why

    async def _fetch(self, stream: Stream) -> set[str]:
        """Fetch files of one folder; the names of those that have arrived whole, beside which nothing is kept."""
        target = self._content / stream.folder
        whole: set[str] = set()
        try:
            target.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self._content.parent) as file:
                if stream.total < sum(stream.sizes.values()):
                    whole = await self._fetch_ends(stream, file, target)
                else:
                    whole = await self._fetch_whole(stream, file, target)
            return whole
        except OSError as error:
            raise unwritable(error) from error
        finally:
            for name in stream.sizes.keys() - whole:
                (target / name).unlink(missing_ok=True)

    async def _fetch_whole(self, stream: Stream, file: BinaryIO, target: Path) -> set[str]:
        names = "".join(f"./{name}\0" for name in stream.sizes).encode()
        growth = min(GROWTH, self._room.for_more(stream, self._taken))
        listed = stream.total + len(stream.sizes) * OVERHEAD
        await self._send((SEND, self._work, self._path(stream)), names, _Bounded(file, growth + listed))
        self._taken += max(0, os.fstat(file.fileno()).st_size - stream.total)
        largest = {name: size + growth for name, size in stream.sizes.items()}
        whole = await asyncio.to_thread(unpack, file, target, largest)
        # another machine of a file system may not have seen yet what the host had written when it listed it
        least = stream.sizes if self._near else dict.fromkeys(whole, 0)
        return {name for name in whole if (target / name).stat().st_size >= least[name]}

    async def _fetch_ends(self, stream: Stream, file: BinaryIO, target: Path) -> set[str]:
        """The first and the last of the one log of which no more is taken."""
        ((name, size),) = stream.sizes.items()
        begin = size - END_SIZE
        argv = (SEND_ENDS, self._work, self._path(stream), name, str(begin))
        await self._send(argv, b"", _Bounded(file, 2 * (SUM_LINE + END_SIZE)))
        whole = await asyncio.to_thread(unpack_ends, file, target / name, begin - END_SIZE)
        return {name} if whole else set()

    def _path(self, stream: Stream) -> str:
        return str(PurePosixPath(self._folder, stream.folder))

    async def _send(self, script: Sequence[str], stdin: bytes, target: _Bounded) -> None:
        """Run a script that prints a stream."""
        argv = ("sh", "-c", *script)
        reader = self._near or self._transport
        limit_s = self._left_s() / (2 if self._near else 1)  # there must be time left for the host
        done = await reader.run(argv, stdin=stdin, stdout=target.write, timeout=limit_s)
        if done.returncode not in (0, SOME_FAILED):
            raise FlagPerfError(f"exit code {done.returncode}: {done.last_lines(1)}")
        target.rewind()


class _Bounded:
    """A file that takes no more than `most` bytes: who sends more is stopped."""

    def __init__(self, file: BinaryIO, most: int) -> None:
        self._file, self._most = file, most

    async def write(self, chunk: bytes) -> None:
        """The next part of a stream."""
        if self._file.tell() + len(chunk) > self._most:
            raise FlagPerfError("more comes than was listed")
        self._file.write(chunk)

    def rewind(self) -> None:
        """Go to its begin, to read it."""
        self._file.seek(0)
