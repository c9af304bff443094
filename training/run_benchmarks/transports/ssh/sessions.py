"""Sessions on a host: as many as are asked for, on as few connections as carry them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import asyncssh

from run_benchmarks.transports.base import TransportError
from run_benchmarks.transports.time_limit import within

# sshd allows ten sessions a connection (MaxSessions); two are left for ending commands.
SESSIONS_PER_CONNECTION = 8


@dataclass(eq=False)
class Carrier:
    """A connection and how much of it is in use."""

    connection: asyncssh.SSHClientConnection
    limit: int = SESSIONS_PER_CONNECTION
    used: int = 0

    @property
    def has_room(self) -> bool:
        """Whether it can carry one more session now."""
        return self.used < self.limit and not self.connection.is_closed()

    def note_refusal(self) -> None:
        """The host refused one more session than the others in use: its MaxSessions is lower."""
        self.limit = max(1, self.used - 1)


@dataclass
class Sessions:
    """Lends out sessions. A further connection is opened where all are full, so that commands that last for
    hours (waiting for a task) never hold up the others; they are opened one after the other.
    """

    host: str
    connect: Callable[[], Awaitable[asyncssh.SSHClientConnection]]
    _carriers: list[Carrier] = field(default_factory=list)
    _opening: asyncio.Task[Carrier] | None = None
    _freed: asyncio.Event = field(default_factory=asyncio.Event)

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Carrier]:
        """A place for one session; the connection is opened, or reopened after a loss, where need be."""
        carrier = await self._with_room()
        carrier.used += 1
        try:
            yield carrier
        finally:
            carrier.used -= 1
            self._freed.set()

    async def close(self) -> None:
        """Close all connections."""
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.gather(self._opening, return_exceptions=True)
        carriers, self._carriers = self._carriers, []
        for carrier in carriers:
            carrier.connection.close()
        await asyncio.gather(*(_closed(carrier.connection) for carrier in carriers))

    async def _with_room(self) -> Carrier:
        while True:
            self._carriers = [carrier for carrier in self._carriers if not carrier.connection.is_closed()]
            free = [carrier for carrier in self._carriers if carrier.has_room]
            if free:
                return free[0]
            await self._opened_or_freed()

    async def _opened_or_freed(self) -> None:
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._open())
            self._opening.add_done_callback(self._note_opened)
        opening = self._opening
        self._freed.clear()
        freed = asyncio.ensure_future(self._freed.wait())
        try:
            await asyncio.wait({opening, freed}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            freed.cancel()
        # not to be opened once more from here: a host that closes each would be logged in to without a pause or an end
        if opening.done() and opening.result().connection.is_closed():
            raise TransportError(
                "it lets us in, and closes the connection at once",
                where=self.host,
                remedy="see the log of its sshd, and whether the ssh user's session can be started there",
            )

    async def _open(self) -> Carrier:
        carrier = Carrier(await self.connect())
        self._carriers.append(carrier)
        return carrier

    def _note_opened(self, opening: asyncio.Task[Carrier]) -> None:
        """What became of it is for those alone who wait for it now: later its end says nothing of the host."""
        if self._opening is opening:
            self._opening = None
        if not opening.cancelled():
            opening.exception()  # seen, also where nobody waits any more


async def _closed(connection: asyncssh.SSHClientConnection) -> None:
    """Wait for the end of a connection, but not for a host that no longer answers."""
    try:
        await within(connection.wait_closed(), 2.0)
    except asyncio.TimeoutError:
        connection.abort()
