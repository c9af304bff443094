"""One file to many hosts, which pass it on: real sshd, real processes, an address of the loopback network a host."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import os
import re
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from run_benchmarks.hosts.base import Host
from run_benchmarks.names import COPY_NAME, HostPaths, copy_folder
from run_benchmarks.plan.records import ClusterSettings
from run_benchmarks.stages import passing
from run_benchmarks.stages.deploy import deploy_tree, pass_tree_on
from run_benchmarks.stages.identity import new_identity
from run_benchmarks.stages.passing import FIRST, Content, Place, Site, bring, keep
from run_benchmarks.stages.run_folder import left_folders_argv
from run_benchmarks.stages.served_port import LONGEST_PRINTED, PrintedPort
from run_benchmarks.stages.tree import pack_tree
from run_benchmarks.transports.base import ByteSink, ByteSource, CommandTimeoutError, Completed
from run_benchmarks.transports.ssh import SshTransport
from tests.run_benchmarks.conftest import LogLines
from tests.run_benchmarks.process_table import argvs_meanwhile
from tests.run_benchmarks.stages.training_folder import make_training
from tests.run_benchmarks.transports.conftest import eventually, live_as, need_sshd
from tests.run_benchmarks.transports.sshd import Sshd
from utils import pass_on
from utils.errors import FlagPerfError
from utils.pass_on import BOOT

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
        path = Path(place.work, place.copy)
        self.modes |= {path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777}
        self.used[place.host.name] = path.read_bytes()

    def bring(self, hosts: Sequence[Host], **options: Any) -> dict[str, FlagPerfError]:
        given = {"room": CONTENT.size, "fill": self.fill, "use": self.use, **options}

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
    assert nodes.used == {host.name: FILE for host in hosts}
    sent = sum(host.transport.sent for host in hosts)  # type: ignore[attr-defined]
    assert FIRST * len(FILE) < sent < (FIRST + 0.5) * len(FILE), "and the program, to each"
    assert nodes.modes == {0o600, 0o700} and nodes.left() == []
    assert any("6 of 8 hosts got it from each other" in line for line in log_lines.messages)


class AlteredTransport(CountingTransport):
    """A host that runs another program than it is fed: one in which `old` is replaced by `new`."""

    def __init__(self, host: Host, old: str, new: str) -> None:
        super().__init__(host.name, host.transport._cluster)  # type: ignore[attr-defined]
        self._words = (old, new)

    async def _run(
        self, argv: tuple[str, ...], stdin: ByteSource | None, stdout: ByteSink
    ) -> tuple[int, str]:
        if BOOT in argv:
            text = (
                f"(sys.stdin.buffer.read(int(sys.stdin.buffer.readline())).decode().replace{self._words!r})"
            )
            argv = (*argv[:-1], f"import sys; exec{text}")
        return await super()._run(argv, stdin, stdout)


def altered(host: Host, old: str, new: str) -> Host:
    """The host, in whose program something is replaced: that of a node whose root does as he likes."""
    assert old in Path(pass_on.__file__).read_text()
    return replace(host, transport=AlteredTransport(host, old, new))


HOSTILE_GIVERS = {
    "other bytes": ("peer.sendall(chunk)", "peer.sendall(bytes(len(chunk)))"),
    "closes in the middle": ("moved.by(len(chunk))\n        peer", "sys.exit()\n        peer"),
    "another certificate": ("_as_server(identity)", "_as_server(OTHER)"),
    "more than it has": ("peer.recv(1)", "peer.sendall(chunk * 2**10) if chunk else None"),
    "a port that is none": ("print(listener.getsockname()[1]", "print('x' * 10**6"),
    "never answers": ("print(listener.getsockname()[1]", "print(''"),
}


@pytest.mark.parametrize("name", HOSTILE_GIVERS)
def test_a_hostile_host_spoils_nobody_elses_copy(
    name: str, nodes: Nodes, monkeypatch: pytest.MonkeyPatch, log_lines: LogLines
) -> None:
    """It is among the first; whoever did not get it from there gets it from another."""
    monkeypatch.setattr(passing, "START_S", 5.0)
    old, new = HOSTILE_GIVERS[name]
    certificate, key = new_identity()
    first, *others = nodes.hosts(5)
    hosts = [altered(first, old, new.replace("OTHER", repr(certificate + key))), *others]
    assert nodes.bring(hosts) == {}
    assert nodes.used == {host.name: FILE for host in hosts} and nodes.left() == []


def test_a_host_without_python_is_named_and_the_others_go_on(nodes: Nodes, log_lines: LogLines) -> None:
    class Bare(CountingTransport):
        async def _run(self, argv: Any, stdin: Any, stdout: Any) -> tuple[int, str]:
            given = tuple(word.replace("python3", "no-such-python") for word in argv)
            return await super()._run(given, stdin, stdout)

    hosts = nodes.hosts(5)
    hosts[1] = replace(hosts[1], transport=Bare(hosts[1].name, hosts[1].transport._cluster))  # type: ignore[attr-defined]
    failed = nodes.bring(hosts)
    assert list(failed) == [hosts[1].name] and nodes.used.keys() == {host.name for host in hosts} - {*failed}
    (warned,) = [line for line in log_lines.messages if "gets it from this machine" in line]
    assert warned.startswith(f"{hosts[1].name}: ") and "no-such-python: not found" in warned


def test_where_no_host_has_room_none_is_filled(nodes: Nodes, log_lines: LogLines) -> None:
    hosts = nodes.hosts(4)
    failed = nodes.bring(hosts, room=2**60)
    assert failed.keys() == {host.name for host in hosts} and nodes.used == {} and nodes.left() == []
    assert all("bytes are free for a copy" in error.message for error in failed.values())
    assert any("gets it from this machine: " in line for line in log_lines.messages)


def test_where_only_the_first_can_have_a_copy_none_is_made(nodes: Nodes, log_lines: LogLines) -> None:
    hosts = nodes.hosts(FIRST)
    assert nodes.bring(hosts).keys() == {host.name for host in hosts}
    assert nodes.used == {} and sum(host.transport.sent for host in hosts) == 0  # type: ignore[attr-defined]
    assert any("no other host can have a copy" in line for line in log_lines.messages)


def test_where_hosts_do_not_reach_each_other_those_are_named_that_have_none(nodes: Nodes) -> None:
    """Names below .invalid have no address (RFC 6761)."""
    hosts = [replace(host, address=f"{host.name}.invalid") for host in nodes.hosts(8)]
    failed = nodes.bring(hosts)
    assert failed.keys() == {host.name for host in hosts[FIRST:]}
    assert nodes.used.keys() == {host.name for host in hosts[:FIRST]} and nodes.left() == []


def test_a_host_that_reaches_no_other_takes_nothing_from_them(nodes: Nodes) -> None:
    """It fails with two, which go on giving."""
    hosts = nodes.hosts(6)
    hosts[2] = altered(hosts[2], "create_connection((address, port)", "create_connection(('x.invalid', port)")
    failed = nodes.bring(hosts)
    assert list(failed) == [hosts[2].name] and len(nodes.used) == 5


class StuckTransport(CountingTransport):
    """FAKE: a host whose sshd takes the command that fetches a copy, and never ends it."""

    tries = 0

    async def run(self, argv: Sequence[str], **options: Any) -> Completed:
        if BOOT not in argv:
            return await super().run(argv, **options)
        self.tries += 1
        raise CommandTimeoutError("not done after 20540 s, ended", where=self.host)


def test_a_receiver_that_used_up_its_time_gets_no_other(nodes: Nodes) -> None:
    hosts = nodes.hosts(FIRST + 1)
    stuck = StuckTransport(hosts[-1].name, hosts[-1].transport._cluster)  # type: ignore[attr-defined]
    failed = nodes.bring([*hosts[:-1], replace(hosts[-1], transport=stuck)])
    assert list(failed) == [stuck.host]
    assert stuck.tries == 1


def test_who_cannot_use_its_copy_is_named_and_gives_it_on(nodes: Nodes) -> None:
    hosts = nodes.hosts(5)

    async def use(place: Place) -> None:
        if place.host is hosts[0]:
            raise FlagPerfError("no space left on device", where=place.host.name)
        await nodes.use(place)

    failed = nodes.bring(hosts, use=use)
    assert {name: error.message for name, error in failed.items()} == {
        hosts[0].name: "no space left on device"
    }
    assert len(nodes.used) == 4


def test_what_the_source_cannot_hand_out_is_an_error_and_leaves_nothing(nodes: Nodes) -> None:
    async def fill(places: Sequence[Place]) -> tuple[Content, Mapping[str, FlagPerfError]]:
        await nodes.fill(places)
        raise FlagPerfError("the disk is broken", where="source")

    with pytest.raises(FlagPerfError, match="the disk is broken"):
        nodes.bring(nodes.hosts(4), fill=fill)
    assert nodes.used == {} and nodes.left() == []


async def patient(call: str, program: Any = passing._program) -> AsyncIterator[bytes]:
    """The program, as one that does not mind how slow the others are."""
    async for text in program(f"WAIT_S, STEP_S = 600.0, 600\n{call}"):
        yield text


def programs(server: Sshd) -> list[int]:
    """Those of the server's hosts that serve or fetch."""
    assert server.process
    children = psutil.Process(server.process.pid).children(recursive=True)
    found = []
    for child in children:
        with suppress(psutil.Error):  # it has ended meanwhile
            found += [child.pid] if any("sys.stdin.buffer" in word for word in child.cmdline()[:4]) else []
    return found


def test_where_it_is_interrupted_no_program_and_no_copy_is_left(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While hosts wait for bytes that never come, and others use what they have."""
    monkeypatch.setattr(passing, "START_S", 300.0)
    monkeypatch.setattr(passing, "_program", patient)
    hosts = [altered(host, "peer.sendall(chunk)", "__import__('time').sleep(600)") for host in nodes.hosts(4)]

    async def use(place: Place) -> None:
        await asyncio.Event().wait()

    async def scenario() -> None:
        async with opened(hosts):
            options = (2 * len(FILE), nodes.fill, use)
            bringing = asyncio.create_task(bring("it", hosts, nodes.site, *options))
            await eventually(lambda: len(programs(nodes.server)) == 4)
            assert len(nodes.left()) == 4
            bringing.cancel()
            done, _ = await asyncio.wait({bringing}, timeout=60)  # nothing of it ends by itself so soon
            assert done and bringing.cancelled()
            await eventually(lambda: not programs(nodes.server))

    asyncio.run(asyncio.wait_for(scenario(), 120))
    assert nodes.left() == []


def test_a_controller_that_is_killed_leaves_no_program(nodes: Nodes) -> None:
    """Its connections are gone, as far as hosts see; the copies are left to `cleanup`."""
    hosts = [altered(host, "peer.sendall(chunk)", "__import__('time').sleep(600)") for host in nodes.hosts(4)]

    async def scenario() -> None:
        async with opened(hosts):
            options = (2 * len(FILE), nodes.fill, nodes.use)
            bringing = asyncio.create_task(bring("it", hosts, nodes.site, *options))
            await eventually(lambda: len(programs(nodes.server)) == 4)
            running = [psutil.Process(pid) for pid in programs(nodes.server)]
            nodes.server.drop_connections()
            await eventually(lambda: not any(map(is_alive, running)))
            bringing.cancel()
            await asyncio.gather(bringing, return_exceptions=True)

    asyncio.run(asyncio.wait_for(scenario(), 120))


def is_alive(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


def test_what_a_killed_controller_left_is_removed_by_the_runs_name_alone(nodes: Nodes) -> None:
    mine, others = copy_folder(UID), copy_folder("run20250101000000-ffffff")
    for name in (mine, others, f"tree-{UID}"):
        (nodes.work / name).mkdir(parents=True)
        (nodes.work / name / "copy").write_bytes(FILE)
    assert subprocess.run(left_folders_argv(str(nodes.work), UID)).returncode == 0
    assert sorted(path.name for path in nodes.work.iterdir()) == sorted([others, f"tree-{UID}"])
    assert COPY_NAME.fullmatch(others) and not COPY_NAME.fullmatch(f"tree-{UID}")


def test_a_planted_copy_is_not_taken_for_one(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name cannot be guessed; where it is there all the same, the host gets it from this machine."""
    monkeypatch.setattr(passing, "copy_folder", lambda uid: f"copy-{uid}-{next(numbers):012x}")
    numbers = itertools.count()
    nodes.work.mkdir(mode=0o700)
    (nodes.work / f"copy-{UID}-000000000001").symlink_to(nodes.folder)
    failed = nodes.bring(nodes.hosts(4))
    assert [error.message.partition(":")[0] for error in failed.values()] == ["mkdir"]
    assert len(nodes.used) == 3 and not (nodes.folder / "copy").exists()


@settings(max_examples=300, deadline=None, derandomize=True)
@given(chunks=st.lists(st.binary(max_size=120) | st.from_regex(rb"\s?-?\d{0,20}\s?", fullmatch=True)))
def test_whatever_a_host_prints_its_port_is_one_or_is_not_known(chunks: list[bytes]) -> None:
    async def scenario() -> None:
        port = PrintedPort()
        for chunk in chunks:
            await port.take(chunk)
        assert len(port._printed) <= 2 * LONGEST_PRINTED
        if port.number.done():
            first = b"".join(chunks).partition(b"\n")[0]
            assert 0 < port.number.result() < 2**16 and port.number.result() == int(first)

    asyncio.run(scenario())


def test_the_code_leaves_this_machine_twice_for_eight_hosts(nodes: Nodes, log_lines: LogLines) -> None:
    """Hosts that lack it pass it on; what `deploy_tree` finds then is whole, and is left alone."""
    training = make_training(nodes.folder / "training")
    (training / "benchmarks" / "noise").write_bytes(FILE)
    tree, hosts = pack_tree(training), nodes.hosts(9)
    paths = HostPaths(str(nodes.work), f"{nodes.work}/tree-{tree.digest[:16]}", "/none", "/none")

    async def scenario() -> list[list[str]]:
        async with opened(hosts):
            for _ in range(2):
                await pass_tree_on(hosts, tree, paths, nodes.site)
            return [await deploy_tree(host.transport, tree, paths) for host in hosts]

    assert asyncio.run(scenario()) == [[]] * len(hosts)
    sent = sum(host.transport.sent for host in hosts)  # type: ignore[attr-defined]
    assert FIRST * len(FILE) < sent < (FIRST + 0.5) * len(FILE)
    assert len([line for line in log_lines.messages if "7 of 9 hosts got it from each other" in line]) == 1
    assert nodes.left() == [] and Path(paths.tree, "benchmarks/noise").read_bytes() == FILE


def test_no_list_of_processes_and_no_log_shows_a_key_or_a_token(
    nodes: Nodes, log_lines: LogLines, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    async def noted(call: str, program: Any = passing._program) -> AsyncIterator[bytes]:
        made.append(call)
        async for text in program(call):
            yield text

    monkeypatch.setattr(passing, "_program", noted)
    with argvs_meanwhile() as argvs:
        assert nodes.bring(nodes.hosts(4)) == {}
    shown = "\n".join((*argvs, *log_lines.messages, *log_lines.details))
    assert "sys.stdin.buffer" in shown and len(made) == 2 * 2, "the programs were seen, and a log of them"
    for token in (match[0] for call in made for match in re.finditer(r"[0-9a-f]{64}", call)):
        assert token == CONTENT.sha256 or token not in shown
    assert "PRIVATE KEY" not in shown and "BEGIN CERTIFICATE" not in shown
