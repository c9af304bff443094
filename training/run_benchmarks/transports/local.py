"""The local transport: commands on this machine, without ssh."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from pathlib import Path

from run_benchmarks.transports.base import ByteSink, Completed, Transport
from run_benchmarks.transports.streams import CHUNK_BYTES, collect, feed, together, while_feeding

GRACE_S = 2.0  # between SIGTERM and SIGKILL, for a command that is ended early


class LocalTransport(Transport):
    """This machine. Every command gets a session of its own, so that it can be ended with all it started."""

    def __init__(self, host: str = "localhost") -> None:
        super().__init__(host)

    async def _run(
        self, argv: tuple[str, ...], stdin: bytes | AsyncIterator[bytes] | None, stdout: ByteSink | None
    ) -> Completed:
        # Shielded: asyncio, cancelled in the middle of it, would end the command but not what that has started.
        starting = asyncio.ensure_future(_start(argv, DEVNULL if stdin is None else PIPE))
        try:
            process = await asyncio.shield(starting)
            if isinstance(process, OSError):
                return self._not_started(argv, process)
            out, err = await _pump(process, stdin, stdout)
        except BaseException:
            await asyncio.shield(_end(starting))
            raise
        return Completed(
            self.host,
            argv,
            _shell_code(process.returncode),
            out.decode(errors="replace"),
            err.decode(errors="replace"),
        )

    def _not_started(self, argv: tuple[str, ...], error: OSError) -> Completed:
        """What a shell says of a command that cannot be started, so that local and ssh hosts agree."""
        code = 127 if isinstance(error, (FileNotFoundError, NotADirectoryError)) else 126
        return Completed(self.host, argv, code, "", f"{argv[0]}: {error.strerror}")


async def _start(argv: tuple[str, ...], stdin: int) -> Process | OSError:
    """Start a command in a session of its own; the error where it cannot be started."""
    try:
        return await asyncio.create_subprocess_exec(
            *argv, stdin=stdin, stdout=PIPE, stderr=PIPE, limit=CHUNK_BYTES, start_new_session=True
        )
    except OSError as error:
        return error


async def _pump(
    process: Process, stdin: bytes | AsyncIterator[bytes] | None, stdout: ByteSink | None
) -> tuple[bytes, bytes]:
    assert process.stdout is not None
    assert process.stderr is not None
    main = together(collect(process.stdout, stdout), collect(process.stderr), process.wait())
    if stdin is None:
        out, err, _ = await main
    else:
        assert process.stdin is not None
        out, err, _ = await while_feeding(feed(process.stdin, stdin), main)
    return out, err


def _shell_code(returncode: int | None) -> int:
    """The exit code as a shell gives it: 128 + n for a process that signal n ended."""
    assert returncode is not None
    return returncode if returncode >= 0 else 128 - returncode


async def _end(starting: asyncio.Future[Process | OSError]) -> None:
    """SIGTERM to the command and all that it started, SIGKILL to what is left after a grace."""
    process = await starting
    if isinstance(process, OSError):
        return
    _signal_group(process.pid, signal.SIGTERM)
    deadline = asyncio.get_running_loop().time() + GRACE_S
    while _group_lives(process.pid) and asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(0.05)
    _signal_group(process.pid, signal.SIGKILL)
    await process.wait()
    # What nobody reads any more is not noticed to have ended; there is no public way to let go of the pipes.
    process._transport.close()  # type: ignore[attr-defined]


def _group_lives(group: int) -> bool:
    """Whether the process group has a member that is not a zombie, which may wait long for its parent."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # ended meanwhile
            state, _, of_group, *_ = stat.read_text().rpartition(")")[2].split()
            if int(of_group) == group and state != "Z":
                return True
    return False


def _signal_group(group: int, number: signal.Signals) -> None:
    # gone already, or another user's by now (a command under sudo): neither can be ended from here
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
