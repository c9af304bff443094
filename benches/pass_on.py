"""What it costs to bring one large file to N hosts: all from the controller, and passed on by the hosts.

    .venv/bin/python benches/pass_on.py [--hosts 8 16] [--mib 512] [--uplink-mib 0]

The hosts are loopback addresses of this machine with a real sshd; each writes a file of its own. What leaves the
controller is counted where it is handed to ssh. `--uplink-mib` bounds that, for all hosts together, to so many MiB a
second, as the controller's network would: without it only this machine's processors are measured, which encrypt for
controller and hosts alike.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "training")]

from run_benchmarks.hosts.base import Host  # noqa: E402
from run_benchmarks.plan.records import ClusterSettings  # noqa: E402
from run_benchmarks.stages.fan_out import all_of  # noqa: E402
from run_benchmarks.stages.passing import Content, Place, Site, bring, keep, places_on  # noqa: E402
from run_benchmarks.transports.base import ByteSink, ByteSource  # noqa: E402
from run_benchmarks.transports.ssh import SshTransport  # noqa: E402
from tests.run_benchmarks.transports.sshd import Sshd  # noqa: E402
from utils.errors import FlagPerfError  # noqa: E402

CHUNK = 2**18
UID = "run20260101000000-abcdef"
LIMIT_S = 3600.0


class Uplink:
    """What leaves the controller: counted, and held back where it has a rate (bytes a second)."""

    def __init__(self, rate: float) -> None:
        self.sent, self._rate, self._free_at = 0, rate, time.monotonic()

    async def passed(self, count: int) -> None:
        """Let so many bytes out."""
        self.sent += count
        if self._rate:
            self._free_at = max(self._free_at, time.monotonic()) + count / self._rate
            await asyncio.sleep(max(0.0, self._free_at - time.monotonic()))


class MeasuredHost(SshTransport):
    """A host behind the uplink."""

    def __init__(self, uplink: Uplink, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._uplink = uplink

    async def _run(
        self, argv: tuple[str, ...], stdin: ByteSource | None, stdout: ByteSink
    ) -> tuple[int, str]:
        async def let_out(source: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
            async for chunk in source:
                await self._uplink.passed(len(chunk))
                yield chunk

        given = let_out(stdin) if isinstance(stdin, AsyncIterator) else stdin
        return await super()._run(argv, given, stdout)


class Bench:
    """A file, and the hosts that shall have it."""

    def __init__(self, folder: Path, size: int, rate: float) -> None:
        self._server = Sshd(folder / "sshd", ("ListenAddress 0.0.0.0", "MaxStartups 500"))
        self._server.start()
        os.environ["HOME"] = str(self._server.home)
        self._site = Site(str(folder / "work"), UID)
        self._file, self._rate = folder / "file", rate
        block = os.urandom(2**20)
        self._file.write_bytes(block * (size // len(block)))
        self._content = Content(
            self._file.stat().st_size, hashlib.sha256(self._file.read_bytes()).hexdigest()
        )

    async def measure(self, count: int, *, is_passed_on: bool) -> tuple[float, int]:
        """Seconds, and bytes that left the controller, until `count` hosts have it."""
        names = tuple(f"127.1.0.{number}" for number in range(1, count + 1))
        kind, public, *_ = (self._server.folder / "host_key.pub").read_text().split()
        lines = (f"[{name}]:{self._server.port} {kind} {public}\n" for name in names)
        self._server.known_hosts.write_text("".join(lines))
        cluster, uplink = ClusterSettings(hosts=names, ssh_port=self._server.port), Uplink(self._rate)
        hosts = [Host(name, name, MeasuredHost(uplink, name, cluster)) for name in names]
        await all_of(hosts, lambda host: host.transport.open())
        begin = time.perf_counter()
        await (self._passed_on(hosts) if is_passed_on else self._from_here(hosts))
        seconds = time.perf_counter() - begin
        await all_of(hosts, lambda host: host.transport.close())
        return seconds, uplink.sent

    async def _from_here(self, hosts: Sequence[Host]) -> None:
        async with places_on(hosts, self._site, self._content.size) as (places, _):
            await all_of(places, lambda place: keep(place, self._chunks(), LIMIT_S))

    async def _passed_on(self, hosts: Sequence[Host]) -> None:
        async def fill(places: Sequence[Place]) -> tuple[Content, Mapping[str, FlagPerfError]]:
            await all_of(places, lambda place: keep(place, self._chunks(), LIMIT_S))
            return self._content, {}

        async def use(place: Place) -> None:
            assert Path(place.work, place.copy).stat().st_size == self._content.size

        failed = await bring("it", hosts, self._site, self._content.size, fill, use)
        assert not failed, failed

    async def _chunks(self) -> AsyncIterator[bytes]:
        with self._file.open("rb") as file:
            while chunk := file.read(CHUNK):
                yield chunk

    def close(self) -> None:
        """Stop the server."""
        self._server.stop()


def main() -> None:
    """Measure, and print a line of the table for each number of hosts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--hosts", type=int, nargs="+", default=[8, 16])
    parser.add_argument("--mib", type=int, default=512)
    parser.add_argument("--uplink-mib", type=float, default=0.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="flagperf-pass-on-", dir="/var/tmp") as name:
        bench = Bench(Path(name), given.mib * 2**20, given.uplink_mib * 2**20)
        print("hosts  MiB   from here: s   MiB sent   passed on: s   MiB sent   time   bytes (ratios)")
        for count in given.hosts:
            (here_s, here), (passed_s, passed) = (
                asyncio.run(bench.measure(count, is_passed_on=each)) for each in (False, True)
            )
            print(
                f"{count:5} {given.mib:4} {here_s:14.1f} {here / 2**20:10.0f} {passed_s:14.1f} "
                f"{passed / 2**20:10.0f} {here_s / passed_s:6.1f} {here / passed:6.1f}",
                flush=True,
            )
        bench.close()


if __name__ == "__main__":
    main()
