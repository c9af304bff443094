"""The kubectl transport: commands in a pod."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from run_benchmarks.transports.base import (
    AuthenticationError,
    ByteSink,
    ByteSource,
    Transport,
    TransportError,
)
from run_benchmarks.transports.kubectl.client import REMEDY, Kubectl
from run_benchmarks.transports.kubectl.marks import FIND_AND_END, MarkedCommand
from run_benchmarks.transports.together import Together
from utils.errors import FlagPerfError
from utils.text_files import shortened

CONTAINER = "worker"
END_TIMEOUT_S = 15.0
MOST_AT_ONCE = 64  # commands of one pod: each is a kubectl
LONGEST_REASON = 1000  # characters
_REFUSED = ("(Forbidden)", "(Unauthorized)", "must be logged in")


class KubectlTransport(Transport):
    """One pod. Nothing is held open between commands: each is a `kubectl exec` of its own."""

    keeps = False

    def __init__(self, host: str, pod: str, kubectl: Kubectl) -> None:
        super().__init__(host)
        self._pod, self._kubectl = pod, kubectl
        self._turns = asyncio.Semaphore(MOST_AT_ONCE)

    async def reach(self) -> None:
        """Run a command that does nothing."""
        await self.run(["true"])

    def together(self) -> Transport:
        """The same pod; commands of one moment share a kubectl."""
        return Together(self)

    async def _run(
        self, argv: tuple[str, ...], stdin: ByteSource | None, stdout: ByteSink
    ) -> tuple[int, str]:
        command = MarkedCommand(argv, stdout)
        async with self._turns:
            try:
                _, errors = await self._kubectl.here._run(
                    self._exec(command.argv), command.stdin(stdin), command.take
                )
            except BaseException:
                await asyncio.shield(self._end(command.mark))
                raise
        await command.finish()
        if command.code is None:
            raise self._lost(errors)
        return command.code, errors.replace(f"{command.mark}: ", "sh: ")

    def _exec(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        return self._kubectl.argv("exec", "--stdin", f"--container={CONTAINER}", self._pod, "--", *argv)

    async def _end(self, mark: str) -> None:
        """End the command in the pod, which the end of its connection does not; one that is gone has ended it."""
        argv = self._exec(("sh", "-c", FIND_AND_END, "end"))
        with suppress(asyncio.TimeoutError, FlagPerfError):
            await self._kubectl.here.run(argv, stdin=f"{mark}\n".encode(), timeout=END_TIMEOUT_S)

    def _lost(self, errors: str) -> TransportError:
        reason = shortened(errors.strip(), LONGEST_REASON) or "kubectl ended before the command did"
        kind = AuthenticationError if any(word in errors for word in _REFUSED) else TransportError
        return kind(f"contact was lost: {reason}", where=self.host, remedy=REMEDY)
