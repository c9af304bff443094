"""A host that was taken away and cannot be had again: it has its place among a round's others, and answers nothing."""

from __future__ import annotations

from run_benchmarks.transports.base import ByteSink, ByteSource, Transport, TransportError


class OutOfReach(Transport):
    """No way to a host.

    Args:
        keeps: whether what lies there stays.
    """

    def __init__(self, host: str, *, keeps: bool) -> None:
        super().__init__(host)
        self.keeps = keeps

    async def _run(
        self, argv: tuple[str, ...], stdin: ByteSource | None, stdout: ByteSink
    ) -> tuple[int, str]:
        raise TransportError("it was taken away, and cannot be had once more", where=self.host)
