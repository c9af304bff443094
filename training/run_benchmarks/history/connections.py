"""Connections to the pages: few, for requests without a body, one after the other; who is slow makes room."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS = 64
BACKLOG = 64  # connections that are taken at once
STALLED_AFTER_S = 10.0  # without a whole request, or a byte of the answer that has left
LONGEST_HEAD = 2**15  # bytes; the address that compares a hundred rounds has a third of it
PART = 4096  # bytes that are looked at before the next: a body in chunks of a byte would take a second a read


class PageProtocol(H11Protocol):
    """A connection. Of too many the oldest is closed for which no page is being made."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to watch; make room."""
        super().connection_made(transport)
        self._made_at = self.loop.time()
        self._watching = self.loop.call_later(STALLED_AFTER_S, self._watch, None)
        if len(self.connections) > MOST_CONNECTIONS:
            everybody: Any = self.connections
            oldest: PageProtocol = min(everybody, key=lambda each: (each.is_at_work, each._made_at))
            self.connections.discard(oldest)
            oldest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Its place is free."""
        self._watching.cancel()
        super().connection_lost(exc)

    @property
    def is_at_work(self) -> bool:
        """Whether a page is being made for it."""
        return self.cycle is not None and not self.cycle.response_started

    def data_received(self, data: bytes) -> None:
        """Take a request; one with a body, or that comes before the last one's answer, ends the connection."""
        for begin in range(0, len(data), PART):
            super().data_received(data[begin : begin + PART])
            if self._is_no_browsers():
                self.transport.abort()
            if self.transport.is_closing():
                return

    def _is_no_browsers(self) -> bool:
        has_body = self.cycle is not None and self.cycle.more_body
        return has_body or bool(self.flow.read_paused and self.conn.trailing_data[0])

    def send_400_response(self, msg: str) -> None:
        """Say nothing to what is no HTTP: an answer may have begun."""
        self.transport.abort()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self._watching.cancel()
        self._watching = self.loop.call_later(STALLED_AFTER_S, self._watch, None)
        super().on_response_complete()

    def _watch(self, unsent_before: int | None) -> None:
        """Close it unless a page is being made, or some of one has left since the last look."""
        unsent = self.transport.get_write_buffer_size()
        if not self.is_at_work and unsent in (0, unsent_before):
            self.transport.abort()
            return
        self._watching = self.loop.call_later(STALLED_AFTER_S, self._watch, unsent)
