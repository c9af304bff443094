"""What a transport is: the way an argument list and bytes reach a host."""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from utils.errors import FlagPerfError

ByteSink = Callable[[bytes], Awaitable[None]]


@dataclass(frozen=True)
class Completed:
    """A command that ran to its end on `host`, whatever its exit code."""

    host: str
    argv: tuple[str, ...]
    returncode: int
    stdout: str
    stderr: str

    @property
    def ok(self) -> bool:
        """Whether it exited with 0."""
        return self.returncode == 0

    def last_lines(self, count: int = 20) -> str:
        """The end of what it printed, standard error last."""
        lines = (self.stdout + "\n" + self.stderr).strip().splitlines()
        return "\n".join(lines[-count:])


class TransportError(FlagPerfError):
    """The command's end is not known: the host was not reached, or contact was lost. `where` is the host."""


class HostKeyError(TransportError):
    """The host showed a key that is not trusted. Never retried."""


class CommandTimeoutError(FlagPerfError):
    """The host was reached, but the command was not done in time; it was ended."""


class CommandError(FlagPerfError):
    """A command that had to succeed did not; carries the whole `Completed`."""

    def __init__(self, completed: Completed, remedy: str = "") -> None:
        self.completed = completed
        super().__init__(
            f"exit code {completed.returncode}: {shlex.join(completed.argv)}\n{completed.last_lines()}",
            where=completed.host,
            remedy=remedy,
        )


class Transport(Protocol):
    """One host. Commands are argument lists; nothing is ever interpreted by a shell on the way.

    `run` may be called many times at once. It reconnects by itself when an earlier connection was lost.
    """

    host: str

    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes | AsyncIterator[bytes] | None = None,
        stdout: ByteSink | None = None,
        timeout: float | None = None,
    ) -> Completed:
        """Run `argv` to its end.

        Args:
            stdin: bytes, or chunks of bytes, for its standard input; without it, standard input is empty.
            stdout: receives its standard output in chunks as it comes; `Completed.stdout` is then empty.
            timeout: seconds after which it is ended and CommandTimeoutError raised.

        Raises:
            TransportError: the host was not reached or contact was lost.
            CommandTimeoutError: it did not end in time.

        Cancelling the caller ends the command (and on a host, what it started in its own session).
        """
        ...

    async def close(self) -> None:
        """Let go of the host. Idempotent."""
        ...


async def checked(
    transport: Transport, argv: Sequence[str], *, remedy: str = "", **options: object
) -> Completed:
    """Run `argv` and raise CommandError where it does not exit with 0."""
    completed = await transport.run(argv, **options)  # type: ignore[arg-type]
    if not completed.ok:
        raise CommandError(completed, remedy)
    return completed
