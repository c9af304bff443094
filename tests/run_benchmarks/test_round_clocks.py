"""The clocks of a round's nodes are read at both of its ends, and stand in round.json and result.json."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from run_benchmarks.hosts.fixed import FixedHosts
from run_benchmarks.round import Round
from run_benchmarks.transports.base import ByteSink, ByteSource
from run_benchmarks.transports.local import LocalTransport
from tests.fakes.runtime import FakeRuntime
from tests.run_benchmarks.one_round import make_session, result_file

AHEAD = {"192.0.2.1": "0 seconds", "192.0.2.2": "1500 seconds"}
WRONG = {"192.0.2.1": "0 seconds", "192.0.2.2": "no time"}  # which date refuses


class HostWithClock(LocalTransport):
    """This machine, whose `date` is so far ahead: a FAKE of a clock that is off, by date's own option."""

    ahead = AHEAD

    async def _run(
        self, argv: tuple[str, ...], stdin: ByteSource | None, stdout: ByteSink
    ) -> tuple[int, str]:
        if argv[0] == "date":
            argv = ("date", "-d", self.ahead[self.host], *argv[1:])
        return await super()._run(argv, stdin, stdout)


class HostWithoutTime(HostWithClock):
    """One that prints nothing that is a time."""

    ahead = WRONG


@pytest.mark.parametrize("kind", [HostWithClock, HostWithoutTime])
def test_clocks_are_read_at_both_ends(kind: type[HostWithClock], tmp_path: Path) -> None:
    session = make_session(tmp_path, FakeRuntime())
    session = replace(session, allocator=FixedHosts(session.plan.cluster, kind))
    asyncio.run(asyncio.wait_for(Round(session, session.plan.cases[0], 1).run(), timeout=60))
    session.journal.close()
    seen, result = (
        json.loads(result_file(tmp_path).with_name(name).read_text())
        for name in ("round.json", "result.json")
    )
    assert seen["clocks"] == result["clocks"] and len(seen["clocks"]) == 2
    first, second = seen["clocks"]
    for end in ("begin", "end"):
        assert abs(first[end]["offset_s"]) <= first[end]["uncertainty_s"] + 0.01
    assert first["begin"]["time_s"] < first["end"]["time_s"]
    if kind is HostWithClock:
        for end in ("begin", "end"):
            assert abs(second[end]["offset_s"] - 1500) <= second[end]["uncertainty_s"] + 0.01
        return
    assert second == {"begin": None, "end": None}
    assert any("192.0.2.2: its clock was not read" in note for note in result["notes"])
