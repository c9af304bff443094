"""Hosts that are this machine, with one work folder or with folders of their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from run_benchmarks.hosts.base import Host
from run_benchmarks.transports.base import ByteSink, ByteSource
from run_benchmarks.transports.local import LocalTransport

Before = Callable[[tuple[str, ...]], object]


class Node(LocalTransport):
    """This machine under a name of its own; `sent` counts bytes, `before` happens before each command."""

    def __init__(self, name: str, before: Before = lambda argv: None) -> None:
        super().__init__(name)
        self.sent, self.scripts, self._before = 0, [""], before

    async def _run(
        self, argv: tuple[str, ...], stdin: ByteSource | None, stdout: ByteSink
    ) -> tuple[int, str]:
        self._before(argv)
        self.scripts.append(argv[2] if len(argv) > 2 else "")
        self.sent += len(stdin) if isinstance(stdin, bytes) else 0
        return await super()._run(argv, stdin, stdout)


class Apart(Node):
    """A host that has the path of the work folder on a disk of its own, which is another folder of this machine."""

    def __init__(self, name: str, work: Path, own: Path) -> None:
        super().__init__(name)
        self._work, self._own = str(work), str(own)

    async def _run(
        self, argv: tuple[str, ...], stdin: ByteSource | None, stdout: ByteSink
    ) -> tuple[int, str]:
        return await super()._run(tuple(word.replace(self._work, self._own) for word in argv), stdin, stdout)


def hosts_of(*transports: Node) -> list[Host]:
    return [Host(each.host, each.host, each) for each in transports]
