"""A command on a host: started so that it can be ended with all it started, although it has no terminal."""

from __future__ import annotations

import os
import secrets
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

import asyncssh

from run_benchmarks.transports.base import TransportError
from run_benchmarks.transports.groups import END

# sshd gives each command a session and process group of its own, but nothing ends them when the connection
# goes, or when the client closes the channel. So the group's number is printed first; a second command can
# then end it. $0: a word that marks that line, since a login shell may print what it likes before it.
START = r"""read -r _ _ _ _ group _ </proc/$$/stat; printf '\n%s %s\n' "$0" "$group"; exec "$@" """.strip()
LONGEST_NUMBER = 10  # digits of a process group's
NOISE_BYTES = 2**16  # what a login shell may print before the mark


@dataclass(frozen=True)
class RemoteCommand:
    """A command that runs; `group` is its process group there."""

    process: asyncssh.SSHClientProcess[bytes]
    group: int


async def start_command(
    connection: asyncssh.SSHClientConnection, argv: Sequence[str], host: str
) -> RemoteCommand:
    """Start `argv`; its standard output begins after what the login shell may have printed.

    Raises:
        asyncssh.ChannelOpenError: the host allows no further session on this connection.
        TransportError: its login shell did not start the command.
    """
    mark = f"flagperf-{secrets.token_hex(8)}"
    process = await _execute(connection, ["sh", "-c", START, mark, *argv])
    group = await _read_mark(process, mark.encode(), host)
    return RemoteCommand(process, group)


async def end_command(connection: asyncssh.SSHClientConnection, command: RemoteCommand) -> None:
    """End the command and what it started in its group."""
    killer = await _execute(connection, ["sh", "-c", END, "end", str(command.group)])
    killer.stdin.write_eof()
    await killer.wait_closed()


async def _execute(
    connection: asyncssh.SSHClientConnection, argv: Sequence[str]
) -> asyncssh.SSHClientProcess[bytes]:
    # The protocol carries one string, which the login shell takes apart: the one place where words are joined.
    line = shlex.join(argv)
    return await connection.create_process(os.fsencode(line), encoding=None, request_pty=False, send_env=None)


async def _read_mark(process: asyncssh.SSHClientProcess[bytes], mark: bytes, host: str) -> int:
    printed = bytearray()
    size = len(mark) + 2  # nothing of the command's comes so early: its output stays where it is
    while len(printed) < NOISE_BYTES and (piece := await process.stdout.read(size)):
        printed += piece
        size = 1
        if printed[printed.rfind(b"\n") + 1 :].startswith(mark):
            return _group((await process.stdout.readline()).strip(), host)
    process.close()
    noise = printed.decode(errors="replace").strip()
    output = noise or (await process.stderr.read()).decode(errors="replace").strip()
    raise TransportError(
        f"the login shell did not run the command; it printed: {output[-500:] or 'nothing'}",
        where=host,
        remedy=f"the ssh user needs a POSIX login shell (sh, bash, zsh); check with `ssh {host} true`",
    )


def _group(number: bytes, host: str) -> int:
    """The process group that a command is ended by: 1 would be every process of the host."""
    group = int(number) if number.isdigit() and len(number) <= LONGEST_NUMBER else 0
    if group > 1:
        return group
    shown = number[:20].decode(errors="replace")
    raise TransportError(
        f"the command's process group is {shown!r}", where=host, remedy="check that /proc is mounted there"
    )
