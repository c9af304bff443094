"""Simulated hosts: one ssh server (asyncssh) on many loopback addresses, in a process of its own.

    scale_hosts.py FOLDER PORT ADDRESS...

FOLDER has `host_key` and `authorized_keys`; `ready` on standard output says that all addresses listen. Logging in, keys
and channels are the protocol's own. The hosts are alike: a command is run once on this machine, for the first host that
gets it, and its answer is given to all of them, so that what is measured is not a thousand hosts' work on one machine.
What depends on the host or its time (the clock, its peers, its engine) is answered by ANSWERS.
"""

from __future__ import annotations

import asyncio
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import asyncssh

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "training")]

from run_benchmarks.transports.ssh.remote import END, START  # noqa: E402
from run_benchmarks.transports.together import RUN_ALL  # noqa: E402

NO_GROUP = 2**31 - 1  # of no process: what is told to end it ends nothing
Answer = tuple[int, bytes, bytes]  # exit code, standard output, standard error
ANSWERS: dict[str, Callable[[], Answer]] = {
    "date": lambda: (0, f"{time.time():.9f}\n".encode(), b""),
    "getent": lambda: (0, b"10.1.0.1 STREAM\n", b""),
    "docker": lambda: (0, b"", b""),
}
VERSION = ("docker", "version")


class Memory:
    """The answers to commands that some host was given already."""

    def __init__(self) -> None:
        self._answers: dict[tuple[tuple[str, ...], bytes], asyncio.Task[Answer]] = {}
        self.commands = 0

    async def answer(self, argv: tuple[str, ...], stdin: bytes) -> Answer:
        """What the command prints, and its exit code."""
        if argv[:3] == ("sh", "-c", RUN_ALL):
            return await self._all(argv[3], list(argv[4:]))
        if END in argv:
            return 0, b"", b""
        self.commands += 1
        if argv[:2] == VERSION:
            return 0, b"28.0\n", b""
        if argv[0] in ANSWERS:
            return ANSWERS[argv[0]]()
        return await self.run_once(argv, stdin)

    async def run_once(self, argv: tuple[str, ...], stdin: bytes) -> Answer:
        """The answer that this machine gave when the command was first asked for."""
        if (argv, stdin) not in self._answers:
            self._answers[argv, stdin] = asyncio.ensure_future(run_here(argv, stdin))
        return await asyncio.shield(self._answers[argv, stdin])

    async def _all(self, mark: str, words: list[str]) -> Answer:
        """What RUN_ALL prints of all commands that it gets."""
        answers = [await self.answer(argv, b"") for argv in _taken_apart(words)]
        out = b"".join(out + f"\n{mark} {code}\n".encode() for code, out, _ in answers)
        return 0, out, b"".join(err + f"\n{mark} {code}\n".encode() for code, _, err in answers)


def _taken_apart(words: list[str]) -> Iterator[tuple[str, ...]]:
    """The commands of RUN_ALL."""
    while words:
        count = int(words[0]) + 1
        yield tuple(words[1:count])
        words = words[count:]


async def run_here(argv: tuple[str, ...], stdin: bytes) -> Answer:
    """The answer of this machine."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*argv, stdin=pipe, stdout=pipe, stderr=pipe)
    out, err = await process.communicate(stdin)
    return process.returncode or 0, out, err


class Session(asyncssh.SSHServerSession[bytes]):
    """A command of one host's."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._argv: tuple[str, ...] = ()
        self._stdin = bytearray()

    def connection_made(self, channel: asyncssh.SSHServerChannel[bytes]) -> None:
        self._channel = channel

    def exec_requested(self, command: str) -> bool:
        self._argv = tuple(shlex.split(command))
        return True

    def session_started(self) -> None:
        # the product's own wrapper says which process group it is before it reads anything
        if self._argv[:3] == ("sh", "-c", START):
            self._channel.write(f"\n{self._argv[3]} {NO_GROUP}\n".encode())
            self._argv = self._argv[4:]

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        self._stdin += data

    def eof_received(self) -> bool:
        asyncio.ensure_future(self._answer())  # noqa: RUF006 - it ends with the channel
        return True

    async def _answer(self) -> None:
        code, out, err = await self._memory.answer(self._argv, bytes(self._stdin))
        if not self._channel.is_closing():
            self._channel.write(out)
            self._channel.write_stderr(err)
            self._channel.exit(code)


class Server(asyncssh.SSHServer):
    """One connection."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def session_requested(self) -> asyncssh.SSHServerSession[bytes]:
        return Session(self._memory)


async def main(folder: str, port: str, *addresses: str, memory: Memory) -> None:
    """Serve until this is killed."""
    await asyncssh.listen(
        addresses,
        int(port),
        server_factory=lambda: Server(memory),
        encoding=None,
        server_host_keys=[f"{folder}/host_key"],
        authorized_client_keys=f"{folder}/authorized_keys",
        backlog=1024,
    )
    print("ready", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:], memory=Memory()))
