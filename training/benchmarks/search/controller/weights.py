"""The controller's part of `benchmarks.search.weight_exchange`: files beside the state, of the newest trials alone."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import mkstemp

from anyio import open_file, to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response
from starlette.types import Receive, Scope, Send

from benchmarks.search.protocol import HISTORY
from benchmarks.search.weight_exchange import LARGEST_WEIGHTS, PATH

ENDING = ".safetensors"
_PATH = re.compile(rf"{PATH}([1-9][0-9]{{0,9}})")


class WeightStore:
    """An ASGI application; who asks has shown the run's token before.

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
        match = _PATH.fullmatch(request.url.path)
        if match is None:
            return Response("no trial's weights", 404)
        path = self._folder / f"{match[1]}{ENDING}"
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
        descriptor, name = mkstemp(dir=self._folder, prefix=".")
        partial = Path(name)
        try:
            if not await _written(request, descriptor):
                return Response(f"more than {LARGEST_WEIGHTS} bytes", 413)
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


async def _written(request: Request, descriptor: int) -> bool:
    """Whether the body, which was written, is within the bounds."""
    size = 0
    async with await open_file(descriptor, "wb") as stream:
        async for part in request.stream():
            size += len(part)
            if size > LARGEST_WEIGHTS:
                return False
            await stream.write(part)
    return True
