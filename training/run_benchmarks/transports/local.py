"""The local transport: commands on this machine, without ssh."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Sequence

from run_benchmarks.transports.base import ByteSink, CommandTimeoutError, Completed
from run_benchmarks.transports.streams import collect, feed, together, while_feeding

GRACE_S = 2.0  # between SIGTERM and SIGKILL, for a command that is ended early


class LocalTransport:
    """This machine. Every command gets a session of its own, so that it can be ended with all it started."""

    def __init__(self, host: str = "localhost") -> None:
        self.host = host

    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes | AsyncIterator[bytes] | None = None,
        stdout: ByteSink | None = None,
        timeout: float | None = None,
    ) -> Completed:
        """Run `argv` to its end (see Transport.run)."""
        try:
            return await asyncio.wait_for(self._run(tuple(argv), stdin, stdout), timeout)
        except asyncio.TimeoutError:
            raise CommandTimeoutError(
                f"not done after {timeout:g} s, ended: {shlex.join(argv)}", where=self.host
            ) from None

    async def close(self) -> None:
        """Nothing is held."""

    async def _run(
        self, argv: tuple[str, ...], stdin: bytes | AsyncIterator[bytes] | None, stdout: ByteSink | None
    ) -> Completed:
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=DEVNULL if stdin is None else PIPE,
                stdout=PIPE,
                stderr=PIPE,
                start_new_session=True,
            )
        except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
            return self._not_started(argv, error)
        try:
            out, err = await _pump(process, stdin, stdout)
        except BaseException:
            await asyncio.shield(_end_group(process))
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
        code = 126 if isinstance(error, PermissionError) else 127
        return Completed(self.host, argv, code, "", f"{argv[0]}: {error.strerror}")


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


async def _end_group(process: Process) -> None:
    """SIGTERM to the command and all that it started, SIGKILL to what is left after a grace."""
    _signal_group(process.pid, signal.SIGTERM)
    deadline = asyncio.get_running_loop().time() + GRACE_S
    while _group_exists(process) and asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(0.02)
    _signal_group(process.pid, signal.SIGKILL)
    await process.wait()


def _group_exists(process: Process) -> bool:
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _signal_group(group: int, number: signal.Signals) -> None:
    # gone already, or another user's by now (a command under sudo): neither can be ended from here
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
