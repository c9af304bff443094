"""The controller's part of `benchmarks.search.weight_exchange`: files beside the state, of the newest trials alone."""

from __future__ import annotations

import errno
import os
import re
import shutil
from contextlib import suppress
from pathlib import Path
from tempfile import mkstemp
from typing import BinaryIO

from anyio import to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response
from starlette.types import Receive, Scope, Send

from benchmarks.search.architecture import MOST_PARAMETERS
from benchmarks.search.protocol import HISTORY, THERE_ARE_NONE
from benchmarks.search.weight_exchange import PATH, most_bytes

ENDING, PARTIAL = ".safetensors", ".partial-"
PARAMETERS = "parameters"  # in the scope: how many the network has that weights are stored of
COPIED_AT_ONCE = 2**20  # bytes
LEFT_FREE, SHARE_LEFT_FREE = 2**32, 0.05  # of the disk, whichever is less: the state needs room
_PATH = re.compile(rf"{PATH}([1-9][0-9]{{0,9}})")


def trial_of(path: str) -> int | None:
    """The trial whose weights a path names; None where it names none."""
    match = _PATH.fullmatch(path)
    return int(match[1]) if match else None


class WeightStore:
    """An ASGI application; who asks has shown a token before, and who stores weights that they are its own.

    Args:
        folder: made if need be. It holds the weights of the HISTORY newest trials, which new ones are made of.
        earlier: that of the round that the search goes on from, which is only read: a trial has its number in both.
            What is asked of it is kept: a search that goes on from this one does not see it.
    """

    def __init__(self, folder: Path, earlier: Path | None = None) -> None:
        folder.mkdir(mode=0o700, exist_ok=True)
        for partial in folder.glob(f"{PARTIAL}*"):  # of a controller that was killed
            partial.unlink()
        self._folder, self._earlier = folder, earlier

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        response = await self._response(Request(scope, receive))
        await response(scope, receive, send)

    async def _response(self, request: Request) -> Response:
        trial = trial_of(request.url.path)
        if trial is None:
            return Response("no trial's weights", THERE_ARE_NONE)
        path = self._folder / f"{trial}{ENDING}"
        if request.method == "PUT":
            return await self._put(request, path)
        if request.method != "GET":
            return Response("PUT or GET", 405)
        stored = await to_thread.run_sync(self._stored, path.name)
        return (
            FileResponse(stored, media_type="application/octet-stream")
            if stored
            else Response(status_code=THERE_ARE_NONE)
        )

    def _stored(self, name: str) -> Path | None:
        """Its own file first: a trial that the earlier round's end cut off is trained again, and that is newer."""
        own, earlier = self._folder / name, self._earlier and self._earlier / name
        if _is_plain(own):
            return own
        if not earlier or not _is_plain(earlier):
            return None
        with suppress(OSError):  # no room for it, or it has just been stored
            _copy(earlier, own)
        return own if _is_plain(own) else earlier

    async def _put(self, request: Request, path: Path) -> Response:
        """They get their name when they are whole."""
        most = most_bytes(request.scope.get(PARAMETERS, MOST_PARAMETERS))
        descriptor, name = mkstemp(dir=self._folder, prefix=PARTIAL)
        partial = Path(name)
        try:
            if not await _written(request, descriptor, most):
                return Response(f"more than {most} bytes", 413)
            partial.replace(path)
            await to_thread.run_sync(self._forget)
        except ClientDisconnect:
            return Response("cut off", 400)
        except OSError as error:
            return Response(f"cannot be kept: {error.strerror}", 507)
        finally:
            partial.unlink(missing_ok=True)
        return Response(status_code=204)

    def _forget(self) -> None:
        """The oldest trials' weights: new architectures are not made of these any more."""
        trials = sorted(int(path.stem) for path in self._folder.glob(f"[0-9]*{ENDING}"))
        for trial in trials[:-HISTORY]:
            (self._folder / f"{trial}{ENDING}").unlink(missing_ok=True)


async def _written(request: Request, descriptor: int, most: int) -> bool:
    """Whether the body, which was written, is within the bounds."""
    size = 0
    with open(descriptor, "wb") as stream:
        async for part in request.stream():
            size += len(part)
            if size > most:
                return False
            await to_thread.run_sync(_write, stream, part)
    return True


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _copy(earlier: Path, own: Path) -> None:
    """OSError where it cannot be kept, or `own` is there meanwhile, which is newer."""
    descriptor, name = mkstemp(dir=own.parent, prefix=PARTIAL)
    try:
        with earlier.open("rb") as source, os.fdopen(descriptor, "wb") as stream:
            while part := source.read(COPIED_AT_ONCE):
                _write(stream, part)
        own.hardlink_to(name)
    finally:
        Path(name).unlink()


def _write(stream: BinaryIO, part: bytes) -> None:
    """OSError where only the room is left that the state needs: others fill the disk too, while this goes on."""
    disk = shutil.disk_usage(stream.fileno())
    if disk.free < min(LEFT_FREE, disk.total * SHARE_LEFT_FREE):
        raise OSError(errno.ENOSPC, "too little room is left")
    stream.write(part)
