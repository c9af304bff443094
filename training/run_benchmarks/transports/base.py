"""What a transport is: the way an argument list and bytes reach a host."""

from __future__ import annotations

import asyncio
import os
import shlex
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from run_benchmarks.plan.redact import redact_argv
from run_benchmarks.run_log import LOGGER
from run_benchmarks.transports.time_limit import within
from utils.errors import FlagPerfError
from utils.records import FailureClass
from utils.text_files import from_next_word, shortened_to_words

# Standard input sets variables first. `eval` is the shell's own, so no process ever has them as arguments.
WITH_VARIABLES = ("sh", "-c", 'eval "$(cat)"; exec "$@" </dev/null', "sh")

# Characters of a line that a message shows: what a host prints has no bound.
LONGEST_LINE = 2**12
# Of a command's output so much is held by itself: what is longer is a log, of which the end counts. With many commands
# at once, of hosts that may print anything, it is what bounds the controller's memory; more is for what is read whole.
HELD_BYTES, WHOLE_BYTES = 2**20, 2**26
LONGEST_WORD = (
    200  # characters of a command's, as a script, in an error; the log of level "debug" has all of it
)

ByteSource = bytes | AsyncIterator[bytes]
ByteSink = Callable[[bytes], Awaitable[None]]


class Tail:
    """A sink that keeps the last `most` bytes of what it is given."""

    def __init__(self, most: int = HELD_BYTES) -> None:
        self._most, self._kept, self._given = most, bytearray(), 0

    async def take(self, chunk: bytes) -> None:
        """One more chunk."""
        self._kept += chunk
        self._given += len(chunk)
        if len(self._kept) > 5 * self._most // 4:  # and not with each: all of it is moved
            del self._kept[: -self._most]

    @property
    def is_cut(self) -> bool:
        """Whether it was given more than it keeps."""
        return self._given > self._most

    @property
    def text(self) -> str:
        """What is kept; bytes that are no UTF-8 are replaced."""
        return self._kept[-self._most :].decode(errors="replace")


@dataclass(frozen=True)
class Completed:
    """A command that ran to its end on `host`, whatever its exit code.

    is_cut: it printed more than was to be held, and `stdout` is the end of it.
    """

    host: str
    argv: tuple[str, ...]
    returncode: int
    stdout: str
    stderr: str
    is_cut: bool = False

    @property
    def ok(self) -> bool:
        """Whether it exited with 0."""
        return self.returncode == 0

    def whole_stdout(self) -> str:
        """All that it printed, for what counts or compares it: of a part nobody could tell what is not there.

        Raises:
            FlagPerfError: it printed more than was held.
        """
        if self.is_cut:
            raise FlagPerfError(
                f"printed more than the {len(self.stdout)} characters that are held: {_in_short(self.argv)}",
                where=self.host,
                remedy="see on this host what it prints, and take away what is too much",
            )
        return self.stdout

    def last_lines(self, count: int = 20) -> str:
        """The end of what it printed, standard error last; longer lines are cut, and words that were are left out."""
        out = from_next_word(self.stdout) if self.is_cut else self.stdout
        is_held_in_part = len(self.stderr.encode(errors="replace")) >= HELD_BYTES
        errors = from_next_word(self.stderr) if is_held_in_part else self.stderr
        lines = (out + "\n" + errors).strip().splitlines()
        return "\n".join(shortened_to_words(line, LONGEST_LINE) for line in lines[-count:])


class TransportError(FlagPerfError):
    """The command's end is not known: the host was not reached, or contact was lost. `where` is the host."""

    failure_class = FailureClass.HOST_UNREACHABLE


class PassingError(TransportError):
    """The host did not take a connection just now; it may in a moment."""


class HostKeyError(TransportError):
    """The host showed a key that is not trusted. Never retried."""

    failure_class = FailureClass.HOST_KEY_NOT_TRUSTED


class AuthenticationError(TransportError):
    """The host does not let this user in. Never retried."""

    failure_class = FailureClass.AUTHENTICATION_FAILED


class CommandTimeoutError(FlagPerfError):
    """The host was reached, but the command was not done in time; it was ended."""


class CommandError(FlagPerfError):
    """A command that had to succeed did not; carries the whole `Completed`."""

    def __init__(self, completed: Completed, remedy: str = "") -> None:
        self.completed = completed
        super().__init__(
            f"exit code {completed.returncode}: {_in_short(completed.argv)}\n{completed.last_lines()}",
            where=completed.host,
            remedy=remedy,
        )


class Transport(ABC):
    """One host. Commands are argument lists; nothing is ever interpreted by a shell on the way.

    `run` may be called many times at once, also while others last for hours. A transport that keeps a
    connection reconnects by itself when an earlier one was lost.

    A further transport (`srun --overlap -w HOST`, `kubectl exec POD`) brings one method, `_run`, `close` where
    it holds something, and a line in TRANSPORTS. Time limits and the log are here.
    """

    # Whether what is on the host stays there when that is given back.
    keeps = True

    def __init__(self, host: str) -> None:
        self.host = host

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
        """Run `argv` to its end, and log it with its exit code and how long it took.

        Args:
            stdin: bytes, or chunks of bytes, for its standard input; without it, standard input is empty.
            variables: for its environment, beside what the host gives it; no list of processes and no log shows
                them. They go by standard input, so that a command that gets some has none of its own.
            stdout: receives its standard output in chunks as it comes; `Completed.stdout` is then empty.
            held: so many bytes of its standard output are kept in `Completed.stdout`, the last; see `whole_stdout`.
            timeout: seconds after which it is ended and CommandTimeoutError raised.

        Raises:
            TransportError: the host was not reached or contact was lost.
            CommandTimeoutError: it did not end in time.

        Cancelling the caller ends the command (and on a host, what it started in its own session).
        """
        words, begin, end = tuple(argv), time.monotonic(), "no end is known"
        whole, given = ((*WITH_VARIABLES, *words), exports(variables)) if variables else (words, stdin)
        output = Tail(held)
        try:
            code, err = await within(self._run(whole, given, stdout or output.take), timeout)
            code = code if code >= 0 else 128 - code
            end = f"exit code {code}"
            return Completed(self.host, words, code, output.text, err, output.is_cut)
        except asyncio.TimeoutError:
            raise CommandTimeoutError(
                f"not done after {timeout:.3g} s, ended: {_in_short(words)}",
                where=self.host,
            ) from None
        finally:
            seconds = time.monotonic() - begin
            # what nobody reads is not made: that takes longer than the commands of hundreds of hosts
            LOGGER.opt(lazy=True).debug(
                "{}", lambda: f"{self.host}: {_shown(words)}: {end} after {seconds:.3f} s"
            )

    async def open(self) -> None:  # noqa: B027 - one that holds nothing need not say so
        """Open the way to the host, however many are before it; no command's time runs meanwhile.

        Raises:
            TransportError: the host was not reached.
        """

    async def reach(self) -> None:  # noqa: B027 - where there is no way to be lost
        """Open a further way to the host and let go of it: one that is open may not have noticed that it leads nowhere.

        Raises:
            TransportError: the host is out of reach, and how.
        """

    def together(self) -> Transport:
        """The same host for commands that may be sent as one: for those that may be repeated. See `Together`."""
        return self

    async def host_key(self) -> tuple[str, str] | None:
        """The kind and the fingerprint of the key by which the host has proven that it is itself; None without one."""
        return None

    async def close(self) -> None:  # noqa: B027 - one that holds nothing need not say so
        """Let go of the host. Idempotent."""

    @abstractmethod
    async def _run(
        self, argv: tuple[str, ...], stdin: ByteSource | None, stdout: ByteSink
    ) -> tuple[int, str]:
        """Run `argv` to its end, as `run` promises: its exit code, and the end of its standard error (see `Tail`).

        The exit code is the command's own, -n or 128 + n where signal n ended it, 127 where there is no such command.
        What lies between here and the host may fail too, and that is no exit code: TransportError. Being
        cancelled, which is also how the time limit comes, ends the command on the host before this returns.
        """


def _shown(argv: tuple[str, ...]) -> str:
    """A command for the log: options of the user's may hold credentials."""
    return shlex.join(redact_argv(argv))


def _in_short(argv: tuple[str, ...]) -> str:
    """A command for an error: of a long script its first words."""
    return shlex.join(shortened_to_words(word, LONGEST_WORD) for word in redact_argv(argv))


def exports(variables: Mapping[str, str]) -> bytes:
    """The lines of a shell that set variables for what it runs."""
    lines = (f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())
    return os.fsencode("".join(lines))


async def checked(
    transport: Transport, argv: Sequence[str], *, remedy: str = "", **options: object
) -> Completed:
    """Run `argv` and raise CommandError where it does not exit with 0."""
    completed = await transport.run(argv, **options)  # type: ignore[arg-type]
    if not completed.ok:
        raise CommandError(completed, remedy)
    return completed
