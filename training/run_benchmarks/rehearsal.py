"""A transport that only takes note: what a host would be asked, without a host."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from run_benchmarks.transports.base import ByteSink, Completed


class Rehearsal:
    """Answers every command with success and no output, and keeps them in `commands`."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.commands: list[tuple[str, ...]] = []

    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes | AsyncIterator[bytes] | None = None,
        stdout: ByteSink | None = None,
        timeout: float | None = None,
    ) -> Completed:
        """Note `argv`; nothing is run."""
        self.commands.append(tuple(argv))
        return Completed(self.host, tuple(argv), 0, "", "")

    async def close(self) -> None:
        """There is nothing to let go of."""
