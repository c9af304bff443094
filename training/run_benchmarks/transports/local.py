"""The local transport: commands on this machine, without ssh."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import PIPE, Process
from pathlib import Path

from run_benchmarks.transports.base import ByteSink, ByteSource, Tail, Transport
from run_benchmarks.transports.streams import CHUNK_BYTES, collect, exchange, feed
from run_benchmarks.transports.time_limit import within

GRACE_S = 2.0
END_S = 8.0  # after SIGKILL


class LocalTransport(Transport):
    """This machine. Every command gets a session of its own, so that it can be ended with all it started."""

    def __init__(self, host: str = "localhost", grace_s: float = GRACE_S) -> None:
        """`grace_s`: seconds between SIGTERM and SIGKILL, for a command that is ended early."""
        super().__init__(host)
        self._grace_s = grace_s

    async def _run(
        self,
        argv: tuple[str, ...],
        stdin: ByteSource | None,
        stdout: ByteSink,
        stderr: ByteSink | None = None,
    ) -> tuple[int, str]:
        """As every transport's; with `stderr`, which then gets it all, none of it is kept."""
        # Shielded: asyncio, cancelled in the middle of it, would end the command but not what that has started.
        starting, errors = asyncio.ensure_future(_start(argv)), Tail()
        try:
            process = await asyncio.shield(starting)
            if isinstance(process, OSError):
                return _not_started(argv, process)
            assert process.stdin and process.stdout and process.stderr  # noqa: S101 - for mypy
            *_, code = await exchange(
                feed(process.stdin, stdin or b""),
                collect(process.stdout, stdout),
                collect(process.stderr, stderr or errors.take),
                process.wait(),
            )
        except BaseException:
            await asyncio.shield(_end(starting, self._grace_s))
            raise
        return code, errors.text


def _not_started(argv: tuple[str, ...], error: OSError) -> tuple[int, str]:
    """What a shell says of a command that cannot be started, so that local and ssh hosts agree."""
    code = 127 if isinstance(error, (FileNotFoundError, NotADirectoryError)) else 126
    return code, os.fsencode(f"{argv[0]}: {error.strerror}").decode(errors="replace")


async def _start(argv: tuple[str, ...]) -> Process | OSError:
    """Start a command in a session of its own; the error where it cannot be started.

    In a folder where nobody else writes: an interpreter imports what lies where it was started, and FlagPerf may have
    been started in /tmp.
    """
    try:
        return await asyncio.create_subprocess_exec(
            *argv, cwd="/", stdin=PIPE, stdout=PIPE, stderr=PIPE, limit=CHUNK_BYTES, start_new_session=True
        )
    except OSError as error:
        return error


async def _end(starting: asyncio.Future[Process | OSError], grace_s: float) -> None:
    """SIGTERM to the command and all that it started, SIGKILL to what is left after a grace."""
    process = await starting
    if isinstance(process, OSError):
        return
    _signal_group(process.pid, signal.SIGTERM)
    await _group_ended(process.pid, grace_s)
    _signal_group(process.pid, signal.SIGKILL)
    await _group_ended(process.pid, END_S)  # each member dies when it is next scheduled
    # Before its end is waited for, which asyncio counts from that of its pipes: one that was read slowly is noticed no
    # more, and one that something in another session holds stays open. There is no public way to let go of them.
    assert process.stdin  # noqa: S101 - for mypy
    if process.stdin.transport.get_write_buffer_size():
        process.stdin.transport.abort()  # to close it would wait until what is in the buffer has been read
    for number in (0, 1, 2):
        process._transport.get_pipe_transport(number).close()  # type: ignore[attr-defined]
    with contextlib.suppress(asyncio.TimeoutError):  # it waits for a disk that is gone, and cannot be ended
        await within(process.wait(), END_S)


async def _group_ended(group: int, limit_s: float) -> None:
    """Wait until no process of the group lives, no longer than the limit."""
    deadline = asyncio.get_running_loop().time() + limit_s
    while _group_lives(group) and asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(0.05)


def _group_lives(group: int) -> bool:
    """Whether the process group has a member that is not a zombie, which may wait long for its parent."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # ended meanwhile
            # bytes: a name, which is anybody's to choose, may be no text; it is cut in the middle of a character, too
            state, _, of_group, *_ = stat.read_bytes().rpartition(b")")[2].split()
            if int(of_group) == group and state != b"Z":
                return True
    return False


def _signal_group(group: int, number: signal.Signals) -> None:
    # gone already, or another user's by now (a command under sudo): neither can be ended from here
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
