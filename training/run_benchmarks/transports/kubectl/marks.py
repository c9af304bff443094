"""A command in a pod whose end is known: `kubectl exec` exits with 0 where its connection is lost, and drops output.

(kubernetes/kubectl issues 1208 and 1726, kubernetes/kubernetes issue 124571.) So behind all that the command prints a
mark is printed, with its exit code: where that has come, the command has ended and nothing of its output is missing.
"""

from __future__ import annotations

import os
import re
import secrets
import shlex
from collections.abc import AsyncIterator, Sequence

from run_benchmarks.transports.base import ByteSink, ByteSource
from run_benchmarks.transports.groups import END

# $0: the mark, $1: how many bytes of standard input are what to run; the rest is the command's own. By standard input,
# because `exec` sends words as a part of a URL, which proxies keep short and the API server writes into its audit log.
BEGIN = 'eval "$(head -c "$1")"'
# The mark is looked for in the words of the processes: so it needs not have been printed before the contact was lost.
FIND_AND_END = (
    'read -r mark; for words in $(printf %s "$mark" | grep -lxzF -f - /proc/[0-9]*/cmdline 2>/dev/null); do '
    'read -r _ _ _ _ group _ <"${words%cmdline}stat" && [ "$group" -gt 1 ] && break; group=; done; '
    f'[ "$group" ] || exit 0; set -- "$group"; {END}'
)


_END = re.compile(rb"(flagperf-[0-9a-f]{16}) (\d{3})\n")


class MarkedCommand:
    """`argv` with a mark at its end, on its way to `sink`."""

    def __init__(self, argv: Sequence[str], sink: ByteSink) -> None:
        self.mark = f"flagperf-{secrets.token_hex(8)}"
        words = shlex.join(argv)
        # in a shell of its own, as its own process: `exit` and `cd` are programs here, which there are none of
        script = f'set -- {words}\n(exec "$@")\nprintf \'%s %03d\\n\' "$0" "$?"\n'
        self._head = os.fsencode(script)
        self._size = len(self.mark) + 5
        self._sink, self._held = sink, b""
        self.code: int | None = None

    @property
    def argv(self) -> tuple[str, ...]:
        """What is given to `kubectl exec`."""
        return ("sh", "-c", BEGIN, self.mark, str(len(self._head)))

    async def stdin(self, source: ByteSource | None) -> AsyncIterator[bytes]:
        """What to run, and the command's own standard input behind it."""
        yield self._head
        if isinstance(source, bytes):
            yield source
        elif source is not None:
            async for chunk in source:
                yield chunk

    async def take(self, chunk: bytes) -> None:
        """Hand on what the command prints; nothing is held back but what may be the mark's beginning."""
        self._held += chunk
        ends = (each for each in _END.finditer(self._held) if each[1] == self.mark.encode())
        if match := next(ends, None):
            self.code = int(match[2])
            self._held = self._held[: match.start()] + self._held[match.end() :]
        await self._hand_on(len(self._held) - (0 if self.code is not None else self._begun()))

    async def finish(self) -> None:
        """Hand on what is held back still."""
        await self._hand_on(len(self._held))

    def _begun(self) -> int:
        """How many bytes at the end of what is held may be a mark that has not come whole."""
        mark, most = self.mark.encode(), min(len(self._held), self._size - 1)
        tails = (self._held[-count:] for count in range(most, 0, -1))
        return next((len(tail) for tail in tails if mark.startswith(tail[: len(mark)])), 0)

    async def _hand_on(self, count: int) -> None:
        if count > 0:
            ready, self._held = self._held[:count], self._held[count:]
            await self._sink(ready)
