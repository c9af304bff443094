"""Commands of one moment as one: with hundreds of hosts it is not the commands that cost, but their way.

A session of ssh takes the controller more than a millisecond of processor, and the host a login shell; a host's checks
want fifteen. So what is asked of a host at once goes there in one session, one command after the other.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from run_benchmarks.transports.base import (
    HELD_BYTES,
    ByteSink,
    ByteSource,
    CommandTimeoutError,
    Completed,
    Transport,
)
from utils.errors import FlagPerfError
from utils.numbers import whole

# So long all of them may take; then each is run by itself, with the time that it was given. So one that hangs, or lists
# a large data set, is told from the others.
PATIENCE_S = 20.0
TURNS = 4  # of the event loop, in which tasks begin that are begun by tasks
# $0: a mark; then commands, before each how many words it has. Behind what one prints stand mark and exit code.
RUN_ALL = """while [ $# -gt 0 ]; do
  words=$1; shift
  (rest=$(($# - words)); while [ $words -gt 0 ]; do set -- "$@" "$1"; shift; words=$((words - 1)); done
  shift $rest; exec "$@" </dev/null)
  end="$0 $?"; printf '\\n%s\\n' "$end"; printf '\\n%s\\n' "$end" >&2; shift $words
done"""


@dataclass
class _Asked:
    """A command and how it ended; None where it is to be run by itself."""

    argv: tuple[str, ...]
    held: int
    end: asyncio.Future[Completed | FlagPerfError | None] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class Together(Transport):
    """A host for commands that change nothing, or nothing further when they are repeated.

    Those that begin at the same moment are sent as one.
    """

    def __init__(self, inner: Transport) -> None:
        super().__init__(inner.host)
        self._inner = inner
        self._asked: list[_Asked] = []

    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: ByteSource | None = None,
        stdout: ByteSink | None = None,
        timeout: float | None = None,
        variables: Mapping[str, str] | None = None,
        held: int = HELD_BYTES,
    ) -> Completed:
        """As the host's own transport, by which it goes where it reads something, or hands on what it prints."""
        alone = stdin is not None or stdout is not None or variables
        if not alone and (completed := await self._with_others(tuple(argv), held)):
            return completed
        return await self._inner.run(
            argv, stdin=stdin, stdout=stdout, timeout=timeout, variables=variables, held=held
        )

    async def _run(
        self, argv: tuple[str, ...], stdin: ByteSource | None, stdout: ByteSink
    ) -> tuple[int, str]:
        raise NotImplementedError("run() never comes here")

    async def _with_others(self, argv: tuple[str, ...], held: int) -> Completed | None:
        """How the command ended; None where it is to be run by itself."""
        asked = _Asked(argv, held)
        self._asked.append(asked)
        if len(self._asked) == 1:
            await self._send()
        end = await asked.end
        if isinstance(end, FlagPerfError):
            raise end
        return end

    async def _send(self) -> None:
        """Whoever asks first sends for all; where that is cancelled, the others go by themselves."""
        for _ in range(TURNS):
            await asyncio.sleep(0)
        asked, self._asked = self._asked, []
        ends: Sequence[Completed | FlagPerfError | None] = [None] * len(asked)
        try:
            ends = await self._ends(asked)
        except FlagPerfError as error:
            ends = [error] * len(asked)
        finally:
            for each, end in zip(asked, ends, strict=True):
                if not each.end.done():
                    each.end.set_result(end)

    async def _ends(self, asked: Sequence[_Asked]) -> Sequence[Completed | None]:
        """How each of the commands ended; None for all where that cannot be told of each."""
        unknown: list[Completed | None] = [None] * len(asked)
        if len(asked) == 1:
            return unknown
        mark = f"flagperf-{secrets.token_hex(8)}"
        words = [word for each in asked for word in (str(len(each.argv)), *each.argv)]
        try:
            done = await self._inner.run(
                ("sh", "-c", RUN_ALL, mark, *words), timeout=PATIENCE_S, held=max(each.held for each in asked)
            )
        except CommandTimeoutError:
            return unknown
        # the shell's own messages begin with the mark, which is another on every host
        outs = _parted(done.stdout, f"\n{mark} ")
        errors = _parted(done.stderr.replace(f"{mark}: ", "sh: "), f"\n{mark} ")
        if done.is_cut or not len(outs) == len(errors) == len(asked):
            return unknown
        return [
            _completed(each, self.host, *out, error)
            for each, out, (error, _) in zip(asked, outs, errors, strict=True)
        ]


def _parted(printed: str, mark: str) -> list[tuple[str, int]]:
    """What each command printed, and the number that stands behind the mark after it; -1 where there is none."""
    first, *others = printed.split(mark)
    texts, numbers = [first], []
    for other in others:
        number, _, text = other.partition("\n")
        code = whole(number)
        numbers.append(-1 if code is None else code)
        texts.append(text)
    return list(zip(texts, numbers, strict=False))


def _completed(asked: _Asked, host: str, stdout: str, code: int, stderr: str) -> Completed:
    is_cut = len(stdout) > asked.held
    return Completed(host, asked.argv, code, stdout[-asked.held :], stderr[-HELD_BYTES:], is_cut)
