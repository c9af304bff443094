"""The kubectl transport: commands in a pod."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from run_benchmarks.transports.base import (
    AuthenticationError,
    ByteSink,
    ByteSource,
    Transport,
    TransportError,
)
from run_benchmarks.transports.framed import BEGIN, END, RARE, FramedCommand
from run_benchmarks.transports.groups import END as END_GROUP
from run_benchmarks.transports.kubectl.client import REMEDY, Kubectl
from run_benchmarks.transports.streams import chunks
from run_benchmarks.transports.together import Together
from utils.errors import FlagPerfError
from utils.text_files import shortened_to_words

# `kubectl exec` exits with 0 where its connection is lost, and drops output (kubernetes/kubectl issues 1208 and 1726,
# kubernetes/kubernetes issue 124571): so only a command's frame tells of its end. $1: the name by which the command is
# found, $2: how many bytes of standard input are what to run; the rest is the command's own. By standard input, because
# words are sent as a part of a URL, which proxies keep short and the API server writes into its audit log.
RUN = 'eval "$(head -c "$2")"'
FRAMED = f'\n{BEGIN}\n(exec "$@"); code=$? stays=\n{END}\n'.encode()
# The name is looked for in the words of the processes: so nothing needs to have been printed before contact was lost.
FIND_AND_END = (
    'read -r name; for words in $(printf %s "$name" | grep -lxzF -f - /proc/[0-9]*/cmdline 2>/dev/null); do '
    'read -r _ _ _ _ group _ <"${words%cmdline}stat" && [ "$group" -gt 1 ] && break; group=; done; '
    f'[ "$group" ] || exit 0; set -- "$group"; {END_GROUP}'
)
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
        command = FramedCommand(argv, stdout)
        name = command.mark.removeprefix(RARE)
        script = f"mark='{command.mark}'; set -- ".encode() + command.words + FRAMED
        whole = self._exec(("sh", "-c", RUN, "sh", name, str(len(script))))
        async with self._turns:
            try:
                await self._kubectl.here._run(whole, _input(script, stdin), command.take, command.take_errors)
            except BaseException:
                await asyncio.shield(self._end(name))
                raise
        if command.code is None:
            raise self._lost(command.said)
        return command.code, command.errors

    def _exec(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        return self._kubectl.argv("exec", "--stdin", f"--container={CONTAINER}", self._pod, "--", *argv)

    async def _end(self, name: str) -> None:
        """End the command in the pod, which the end of its connection does not; one that is gone has ended it."""
        argv = self._exec(("sh", "-c", FIND_AND_END, "end"))
        with suppress(asyncio.TimeoutError, FlagPerfError):
            await self._kubectl.here.run(argv, stdin=f"{name}\n".encode(), timeout=END_TIMEOUT_S)

    def _lost(self, errors: str) -> TransportError:
        reason = shortened_to_words(errors.strip(), LONGEST_REASON) or "kubectl ended before the command did"
        kind = AuthenticationError if any(word in errors for word in _REFUSED) else TransportError
        return kind(f"contact was lost: {reason}", where=self.host, remedy=REMEDY)


async def _input(script: bytes, source: ByteSource | None) -> AsyncIterator[bytes]:
    """What to run, and the command's own standard input behind it."""
    yield script
    async for chunk in chunks(source or b""):
        yield chunk
