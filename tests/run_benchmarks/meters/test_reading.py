"""Meters while a round goes on: what hangs or is missed, and what a controller that died leaves."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks.display.base import Display
from run_benchmarks.display.power_meter import Power, PowerMeter
from run_benchmarks.meters.reading import MeterReadings
from run_benchmarks.meters.redfish_resources import LONGEST_NAME
from run_benchmarks.names import Node, meter_file_of
from run_benchmarks.plan.meters import Meter
from run_benchmarks.plan.secrets import Secrets
from run_benchmarks.results.telemetry_file import TelemetryReader
from run_benchmarks.round_meters import finish_meters, start_meters
from run_benchmarks.round_state import RoundState
from run_benchmarks.session import Session
from tests.fakes.runtime import FakeRuntime
from tests.run_benchmarks.builders import make_case
from tests.run_benchmarks.meters.simulators import PASSWORD, chassis, link, power, redfish_bmc
from tests.run_benchmarks.one_round import make_session
from utils.monitors import SAMPLES_GRACE_S
from utils.telemetry.records import Scope


def until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)


def watts_in(path: Path) -> list[float]:
    """The power that stands in a meter's file, half a line at its end left out."""
    lines = path.read_text().splitlines() if path.exists() else []
    records = [json.loads(line) for line in lines if line.endswith("}")]
    return [each["readings"]["power_w"][0] for each in records if each["kind"] == "tick"]


def a_session(tmp_path: Path, port: int, ca_file: str) -> tuple[Session, RoundState]:
    """A run, and its first round, whose first host has a meter."""
    session = make_session(tmp_path / "run", FakeRuntime())
    case = session.plan.cases[0]
    meter = Meter("redfish", "127.0.0.1", port, ca_file=ca_file)
    plan = replace(
        session.plan,
        cluster=replace(session.plan.cluster, meters={case.hosts[0]: meter}),
        run=replace(session.plan.run, monitors={"redfish": 0.1}),
    )
    nodes = tuple(Node(case, 1, rank) for rank in range(len(case.hosts)))
    return replace(session, plan=plan), RoundState(case, 1, "2026-01-02T03:04:05+00:00", nodes)


def test_a_controller_that_comes_back_goes_on_with_the_file(tmp_path: Path) -> None:
    resources = chassis(Power=link("Chassis/1/Power")) | {"Chassis/1/Power": power(250)}
    with redfish_bmc(tmp_path / "bmc", resources) as bmc:
        session, state = a_session(tmp_path, bmc.port, bmc.ca_file)
        path = meter_file_of(session.log_dir / state.nodes[0].folder)

        async def read_some(state: RoundState, count: int) -> None:
            start_meters(session, state)
            await asyncio.to_thread(until, lambda: len(watts_in(path)) >= count)
            await finish_meters(session, state)

        asyncio.run(read_some(state, 3))
        before = len(watts_in(path))
        with path.open("a") as file:
            file.write('{"kind":"tick","time_')  # the controller was killed while it wrote
        long_ago = time.time() - 100
        os.utime(path, (long_ago, long_ago))
        bmc.set_resource("Chassis/1/Power", power(350))
        again = replace(state, is_taken_up=True, notes=[], meters=None)
        asyncio.run(read_some(again, before + 3))
    assert set(watts_in(path)) == {250, 350}
    assert again.notes == [
        f"{state.nodes[0].host}: no power was read from outside for 100 s, while no controller ran"
    ]
    reader = TelemetryReader(path.with_name(state.nodes[0].folder.rpartition("/")[2]) / "telemetry.jsonl")
    assert len(list(reader.ticks())) == len(watts_in(path)) and not reader.wrong
    assert not meter_file_of(session.log_dir / state.nodes[1].folder).exists(), "this host has no meter"
    session.journal.close()


def test_a_bmc_that_names_its_chassis_by_its_password_shows_it_nobody(tmp_path: Path) -> None:
    path, name = f"Chassis/{PASSWORD}/Power", "x" * LONGEST_NAME
    named = {"PowerControl": [{"Name": f"Whole machine {name}{PASSWORD}", "PowerConsumedWatts": 300}]}
    with redfish_bmc(tmp_path / "bmc", chassis(PASSWORD, Power=link(path)) | {path: named}) as bmc:
        session, state = a_session(tmp_path, bmc.port, bmc.ca_file)
        plan = replace(session.plan, secrets=Secrets(held=frozenset({PASSWORD})))
        session = replace(session, plan=plan)
        file = meter_file_of(session.log_dir / state.nodes[0].folder)

        async def scenario() -> None:
            start_meters(session, state)
            await asyncio.to_thread(until, lambda: bool(watts_in(file)))
            await finish_meters(session, state)

        asyncio.run(scenario())
    written = file.read_text()
    assert "PowerControl 0 (Whole machine... (88 characters in all)) of chassis ***" in written
    assert PASSWORD not in written
    session.journal.close()


class Watcher(Display):
    """Keeps what it is told of telemetry."""

    follows_telemetry = True

    def __init__(self) -> None:
        self.told: list[tuple[Node, Any]] = []

    def telemetry(self, node: Node, record: Any) -> None:
        """One more record; always from the loop's own thread."""
        asyncio.get_running_loop()
        self.told.append((node, record))


def test_who_is_shown_the_round_sees_the_power_of_the_bmc(tmp_path: Path) -> None:
    resources = chassis(Power=link("Chassis/1/Power")) | {"Chassis/1/Power": power(250)}
    with redfish_bmc(tmp_path / "bmc", resources) as bmc:
        session, state = a_session(tmp_path, bmc.port, bmc.ca_file)
        watcher = Watcher()
        session, meter, shown = replace(session, display=watcher), PowerMeter(), []

        async def scenario() -> None:
            start_meters(session, state)
            while len(watcher.told) < 5:
                await asyncio.sleep(0.02)
            await finish_meters(session, state)

        asyncio.run(asyncio.wait_for(scenario(), timeout=30))
    assert {node for node, _ in watcher.told} == {state.nodes[0]}
    for _, record in watcher.told:
        shown.append(meter.take(record))
    assert shown[-1] == Power(250, Scope.MACHINE)
    session.journal.close()


def test_a_bmc_that_hangs_is_left_behind(tmp_path: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        meter = Meter("redfish", "127.0.0.1", silent.getsockname()[1], accept_self_signed=True)
        path = tmp_path / "node.meters.jsonl"

        async def scenario() -> None:
            readings = MeterReadings({path: (meter, 0.1)})
            readings.stop()
            await readings.finish()
            assert readings.failures()[path].counts.startswith("0 samples")

        begin = time.monotonic()
        asyncio.run(scenario())
        assert time.monotonic() - begin < SAMPLES_GRACE_S + 3
    (line,) = path.read_text().splitlines()
    assert "has not answered" in json.loads(line)["reason"]


def test_what_is_said_of_many_alike_is_one_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session, state = a_session(tmp_path, 1, "")  # nobody listens there
    hosts = ("n1", "n2", "n3", "n4")
    case = make_case(hosts)
    meters = {
        host: Meter("redfish", f"127.0.0.{n}", 1, accept_self_signed=True) for n, host in enumerate(hosts, 2)
    }
    session = replace(
        session, plan=replace(session.plan, cluster=replace(session.plan.cluster, meters=meters))
    )
    state = replace(state, case=case, nodes=tuple(Node(case, 1, rank) for rank in range(4)))

    async def scenario() -> None:
        start_meters(session, state)
        readings = state.meters
        assert readings
        await asyncio.to_thread(until, lambda: all(each.counts.failed for each in readings.samplers.values()))
        await finish_meters(session, state)

    asyncio.run(scenario())
    (note,) = state.notes
    assert note.startswith("n[1-4]: power from outside was not read all the time (of n1: 0 samples, ")
    assert note.endswith("its BMC cannot be asked: [Errno 111] Connection refused")
    session.journal.close()
