"""A round's nodes have meters outside of them, which are read from before their launch until their units have ended."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from run_benchmarks.meters.reading import Hear, MeterReadings
from run_benchmarks.names import Node, meter_file_of
from run_benchmarks.plan.host_ranges import fold
from run_benchmarks.plan.monitors import meter_interval
from run_benchmarks.round_state import RoundState
from run_benchmarks.session import Session
from utils.telemetry.records import SourceInfo, Tick


def start_meters(session: Session, state: RoundState) -> None:
    """Read the meters of the round's nodes from now on; of a round that is taken up, further."""
    meters, plan = {}, session.plan
    for path, host in _files(session, state).items():
        meter = plan.cluster.meters.get(host)
        interval_s = meter_interval(plan.run.monitors, meter.kind) if meter else None
        if meter and interval_s:
            meters[path] = (meter, interval_s)
            _note_gap(path, host, state)
    try:
        state.meters = MeterReadings(meters, _hears(session, state), plan.secrets.hide)
    except (OSError, RuntimeError) as error:  # no room, no more threads: it is missing, and the round goes on
        state.warn(f"no power is read from outside the nodes: {error}")


async def finish_meters(session: Session, state: RoundState) -> None:
    """Take their last samples, and note which of them were not read all the time."""
    if state.meters is None:
        return
    await state.meters.finish()
    hosts, failures = _files(session, state), state.meters.failures()
    same: dict[str, list[Path]] = {}
    for path, failure in failures.items():
        same.setdefault(failure.reason, []).append(path)
    for paths in same.values():
        first = failures[paths[0]]
        example = f" (of {hosts[paths[0]]}: {first.counts})" if len(paths) > 1 else f" ({first.counts})"
        names = fold([hosts[path] for path in paths])
        state.warn(f"{names}: power from outside was not read all the time{example}: {first.reason}")


def _files(session: Session, state: RoundState) -> Mapping[Path, str]:
    """Where a node's meter is written to -> its host."""
    return {meter_file_of(session.log_dir / node.folder): node.host for node in state.nodes}


def _hears(session: Session, state: RoundState) -> dict[Path, Hear]:
    """Who is shown the round hears of its meters as of its monitors: where the loop runs, and as long as it does."""
    if not session.display.follows_telemetry:
        return {}
    loop = asyncio.get_running_loop()

    def heard_of(node: Node) -> Hear:
        def hear(record: Tick | SourceInfo) -> None:
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(session.display.telemetry, node, record)

        return hear

    return {meter_file_of(session.log_dir / node.folder): heard_of(node) for node in state.nodes}


def _note_gap(path: Path, host: str, state: RoundState) -> None:
    if state.is_taken_up and path.is_file():
        gap_s = max(0.0, time.time() - path.stat().st_mtime)
        state.notes.append(
            f"{host}: no power was read from outside for {gap_s:.0f} s, while no controller ran"
        )
