"""The clocks of a round's nodes are read at both of its ends: what the nodes sample is put on one time line by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from run_benchmarks.hosts.base import Host
from run_benchmarks.names import Node
from run_benchmarks.results.clocks import NodeClock
from run_benchmarks.round_state import RoundState
from run_benchmarks.stages.clock import ClockReading, read_clock
from run_benchmarks.stages.fan_out import errors_of, on_all, values_of

TIMEOUT_S = 5.0
TRIES = 3  # the quickest answer of so many counts: it is the surest


async def read_begin(state: RoundState, hosts: Sequence[Host]) -> None:
    """Read them before the tasks are started; of a round that is taken up, those that are not known from then."""
    state.clocks = state.clocks or tuple(NodeClock() for _ in state.nodes)
    readings = await _read(state, hosts, [node for node in state.nodes if not state.clocks[node.rank].begin])
    state.clocks = tuple(
        replace(clock, begin=readings.get(rank, clock.begin)) for rank, clock in enumerate(state.clocks)
    )


async def read_end(state: RoundState, hosts: Sequence[Host]) -> None:
    """Read them when the tasks have ended, on the hosts that are not lost; not where none came to be launched."""
    there = [node for node in state.nodes if state.clocks and node.host not in state.lost]
    readings = await _read(state, hosts, there)
    state.clocks = tuple(replace(clock, end=readings.get(rank)) for rank, clock in enumerate(state.clocks))


async def _read(state: RoundState, hosts: Sequence[Host], nodes: Sequence[Node]) -> dict[int, ClockReading]:
    """Node rank -> its clock; why one is missing goes to the round's notes."""
    results = await on_all(nodes, lambda node: read_clock(hosts[node.rank].transport, TIMEOUT_S, TRIES))
    for node, error in errors_of(results).items():
        state.notes.append(f"{node.host}: its clock was not read, and is taken to be right: {error.message}")
    return {node.rank: reading for node, reading in values_of(results).items()}
