"""The controller's part of `benchmarks.search.weight_exchange`: files beside the state, of the newest trials alone."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from tempfile import mkstemp

from anyio import open_file, to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response
from starlette.types import Receive, Scope, Send

from benchmarks.search.architecture import MOST_PARAMETERS
from benchmarks.search.protocol import HISTORY
from benchmarks.search.weight_exchange import PATH, most_bytes

ENDING = ".safetensors"
PARAMETERS = "parameters"  # in the scope: how many the network has that weights are stored of
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
    """

    def __init__(self, folder: Path, earlier: Path | None = None) -> None:
        folder.mkdir(mode=0o700, exist_ok=True)
        self._folder = folder
        self._folders = (folder, earlier) if earlier else (folder,)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        response = await self._response(Request(scope, receive))
        await response(scope, receive, send)

    async def _response(self, request: Request) -> Response:
        trial = trial_of(request.url.path)
        if trial is None:
            return Response("no trial's weights", 404)
        path = self._folder / f"{trial}{ENDING}"
        if request.method == "PUT":
            return await self._put(request, path)
        if request.method != "GET":
            return Response("PUT or GET", 405)
        stored = await to_thread.run_sync(self._stored, path.name)
        return (
            FileResponse(stored, media_type="application/octet-stream")
            if stored
            else Response(status_code=404)
        )

    def _stored(self, name: str) -> Path | None:
        """Its own file first: a trial that the earlier round's end cut off is trained again, and that is newer."""
        paths = (folder / name for folder in self._folders)
        return next((path for path in paths if path.is_file() and not path.is_symlink()), None)

    async def _put(self, request: Request, path: Path) -> Response:
        """They get their name when they are whole."""
        most = most_bytes(request.scope.get(PARAMETERS, MOST_PARAMETERS))
        disk = await to_thread.run_sync(shutil.disk_usage, self._folder)
        if disk.free < min(LEFT_FREE, disk.total * SHARE_LEFT_FREE):
            return Response("too little room is left", 507)
        descriptor, name = mkstemp(dir=self._folder, prefix=".")
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
    async with await open_file(descriptor, "wb") as stream:
        async for part in request.stream():
            size += len(part)
            if size > most:
                return False
            await stream.write(part)
    return True
