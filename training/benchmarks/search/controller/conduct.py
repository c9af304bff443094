"""A controller from its start to its end."""

from __future__ import annotations

import asyncio
import signal
import socket
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TextIO, TypeVar

from benchmarks.search.controller.connections import allow_open_files
from benchmarks.search.controller.database import StateError, open_database
from benchmarks.search.controller.ledger import Ledger
from benchmarks.search.controller.proposals import Facts
from benchmarks.search.controller.search import Search
from benchmarks.search.controller.server import App, Application, Check, make_server
from benchmarks.search.controller.settings import SearchSettings
from benchmarks.search.controller.turns import Turns
from benchmarks.search.protocol import Proposed
from utils.events import Event, EventName, format_line
from utils.search.account import finished_values

T = TypeVar("T")
TICK_S = 0.5
TELL_S = 3.0  # until all workers have been told that it is over


def conduct(
    settings: SearchSettings,
    *,
    folder: Path,
    earlier: Path | None,
    listener: socket.socket,
    token: str,
    check: Check,
    out: TextIO,
    weights: Application | None = None,
    first: Sequence[tuple[Proposed, Facts]] = (),
) -> int:
    """Conduct a search to its end; the exit code.

    Args:
        folder: where its state is, or will be. earlier: as of `open_database`. out: where events go.
        check: of what is proposed, see `architectures.checked`. weights: as of App.
        first: as of Search.

    Raises:
        FlagPerfError: the state cannot be used, or not any more.
    """
    allow_open_files(settings.workers)
    ledger = Ledger(open_database(folder, earlier), out)
    try:
        search = Search(ledger, settings, first)
        app = partial(App, search, token=token, check=check, weights=weights)
        return asyncio.run(_conduct(search, listener, app))
    finally:
        ledger.close()


async def _conduct(search: Search, listener: socket.socket, app: Callable[[Turns], App]) -> int:
    turns = Turns(search.ledger)
    stopped = asyncio.get_running_loop().create_future()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, _resolve, stopped, number)
    await _first_of(turns.take(search.start), turns.failed)
    server = make_server(app(turns))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    ends: set[asyncio.Future[Any]] = {stopped, serving, turns.failed}
    try:
        while not (search.over or stopped.done() or serving.done()):
            await asyncio.wait(ends, timeout=TICK_S, return_when=asyncio.FIRST_COMPLETED)
            await _first_of(turns.take(search.tick), turns.failed)
        if serving.done():
            await serving
        if stopped.done():
            print(f"ended by signal {stopped.result()}; what the search has come to is kept", flush=True)
            return 128 + int(stopped.result())
        await _first_of(_told(search), turns.failed)
        return await _first_of(turns.take(partial(_finish, search)), turns.failed)
    finally:
        server.should_exit = True
        await serving
        turns.close()


def _resolve(stopped: asyncio.Future[int], number: int) -> None:
    if not stopped.done():
        stopped.set_result(number)


async def _first_of(wanted: Coroutine[Any, Any, T], failed: asyncio.Future[None]) -> T:
    """What is wanted; FlagPerfError where the state fails first."""
    task = asyncio.ensure_future(wanted)
    both: set[asyncio.Future[Any]] = {task, failed}
    await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    if not task.done():
        task.cancel()
        error = failed.exception()
        remedy = "make room and see to the disk; a run with --continue-from goes on: what was kept is kept"
        raise StateError(f"the state of the search cannot be kept: {error}", remedy=remedy) from error
    return await task


async def _told(search: Search) -> None:
    """Wait until all workers know that it is over, or for as long as that should take."""
    for _ in range(int(TELL_S / TICK_S)):
        await asyncio.sleep(TICK_S)
        if not search.untold:
            return


def _finish(search: Search) -> int:
    """The last line of the log, and the exit code."""
    if search.over == "workers":
        search.ledger.print_line("the search has failed: there has been no worker for too long")
        return 1
    values = finished_values(search.ledger.account)
    event = Event(EventName.FINISHED, values, int(time.time() * 1000), file=Path(__file__).name)
    search.ledger.print_line(format_line(event))
    return 0
