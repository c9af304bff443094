"""One file to many hosts, which pass it on: real sshd, real processes, an address of the loopback network a host."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks.hosts.base import Host
from run_benchmarks.plan.records import ClusterSettings
from run_benchmarks.stages.passing import FIRST, Content, Place, Site, bring, keep
from run_benchmarks.transports.base import ByteSink, ByteSource
from run_benchmarks.transports.ssh import SshTransport
from tests.run_benchmarks.conftest import LogLines
from tests.run_benchmarks.transports.conftest import live_as, need_sshd
from tests.run_benchmarks.transports.sshd import Sshd
from utils.errors import FlagPerfError

UID = "run20261120094218-d7e6a7"
FILE = os.urandom(3_000_000)
CONTENT = Content(len(FILE), hashlib.sha256(FILE).hexdigest())


class CountingTransport(SshTransport):
    """A host by ssh; `sent` are the bytes that left this machine for it."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.sent = 0

    async def _run(
        self, argv: tuple[str, ...], stdin: ByteSource | None, stdout: ByteSink
    ) -> tuple[int, str]:
        async def counted(source: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
            async for chunk in source:
                self.sent += len(chunk)
                yield chunk

        if isinstance(stdin, bytes):
            self.sent += len(stdin)
        elif stdin is not None:
            stdin = counted(stdin)
        return await super()._run(argv, stdin, stdout)


class Nodes:
    """Hosts of one machine, each with an address of its own and a work folder that all of them share."""

    def __init__(self, server: Sshd, folder: Path) -> None:
        self.server, self.folder, self.work = server, folder, folder / "work"
        self.site = Site(str(self.work), UID)
        self.used: dict[str, bytes] = {}
        self.modes: set[int] = set()
        self.had: set[str] = set()

    def hosts(self, count: int) -> list[Host]:
        names = tuple(f"127.1.0.{number}" for number in range(1, count + 1))
        kind, public, *_ = (self.server.folder / "host_key.pub").read_text().split()
        lines = (f"[{name}]:{self.server.port} {kind} {public}\n" for name in names)
        self.server.known_hosts.write_text("".join(lines))
        cluster = ClusterSettings(hosts=names, ssh_port=self.server.port)
        return [Host(name, name, CountingTransport(name, cluster)) for name in names]

    async def fill(self, places: Sequence[Place]) -> tuple[Content, Mapping[str, FlagPerfError]]:
        for place in places:
            await keep(place, FILE, 60)
        return CONTENT, {}

    async def use(self, place: Place) -> None:
        path = Path(place.path)
        self.modes |= {path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777}
        self.used[place.host.name] = path.read_bytes()

    def bring(self, hosts: Sequence[Host], **options: Any) -> dict[str, FlagPerfError]:
        given = {"room": CONTENT.size, "fill": self.fill, "use": self.use, "had": self.had, **options}

        async def scenario() -> dict[str, FlagPerfError]:
            async with opened(hosts):
                return await asyncio.wait_for(bring("it", hosts, self.site, **given), 120)

        return asyncio.run(scenario())

    def left(self) -> list[str]:
        """What is left of copies."""
        return [path.name for path in self.work.glob("copy-*")]


@asynccontextmanager
async def opened(hosts: Sequence[Host]) -> AsyncIterator[None]:
    try:
        yield
    finally:
        for host in hosts:
            await host.transport.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Any:
    need_sshd()
    server = Sshd(tmp_path_factory.mktemp("sshd"), ("ListenAddress 0.0.0.0", "MaxStartups 100"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def nodes(server: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Nodes:
    live_as(server, monkeypatch)
    return Nodes(server, tmp_path)


def test_it_leaves_this_machine_twice_for_eight_hosts(nodes: Nodes, log_lines: LogLines) -> None:
    hosts = nodes.hosts(8)
    assert nodes.bring(hosts) == {}
    assert nodes.used == {host.name: FILE for host in hosts} and nodes.had == nodes.used.keys()
    sent = sum(host.transport.sent for host in hosts)  # type: ignore[attr-defined]
    assert FIRST * len(FILE) < sent < (FIRST + 0.5) * len(FILE), "and the program, to each"
    assert nodes.modes == {0o600, 0o700} and nodes.left() == []
    assert any("6 of 8 hosts got it from each other" in line for line in log_lines.messages)
