"""A transport that writes every command and its end into the log, at the level debug."""

from __future__ import annotations

import shlex
import time
from collections.abc import AsyncIterator, Sequence

from run_benchmarks.plan.redact import redact_text
from run_benchmarks.run_log import LOGGER
from run_benchmarks.transports.base import ByteSink, Completed, Transport


class LoggedTransport:
    """Passes everything on to `inner`."""

    def __init__(self, inner: Transport) -> None:
        self.inner = inner
        self.host = inner.host

    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes | AsyncIterator[bytes] | None = None,
        stdout: ByteSink | None = None,
        timeout: float | None = None,
    ) -> Completed:
        """Run `argv` and log it, with its exit code and how long it took."""
        begin = time.monotonic()
        end = "no end is known"
        try:
            completed = await self.inner.run(argv, stdin=stdin, stdout=stdout, timeout=timeout)
            end = f"exit code {completed.returncode}"
            return completed
        finally:
            # options of the user's may hold credentials
            command = redact_text(shlex.join(argv))
            LOGGER.debug(f"{self.host}: {command}: {end} after {time.monotonic() - begin:.3f} s")

    async def close(self) -> None:
        """Let go of the host."""
        await self.inner.close()
