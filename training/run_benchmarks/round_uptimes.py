"""How long a round has gone on whose controller died, by its hosts' uptimes.

A wall clock may be set meanwhile, and that of another machine is another. An uptime only grows; of a host that was
rebooted it begins anew, and tells of less than has passed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from run_benchmarks.hosts.base import Host
from run_benchmarks.resumption import RoundSoFar
from run_benchmarks.round_state import RoundState
from run_benchmarks.session import now
from run_benchmarks.stages.clock import LATEST_S
from run_benchmarks.stages.fan_out import on_all, values_of
from run_benchmarks.transports.backoff import is_passing, with_backoff
from run_benchmarks.transports.base import Transport, checked
from utils.errors import FlagPerfError

ASK = ("cat", "/proc/uptime")
TIMEOUT_S = 5.0
PAUSES_S = (1.0,)
INEXACT_S = TIMEOUT_S  # an uptime is of a moment between question and answer


async def note_uptimes(state: RoundState, hosts: Sequence[Host]) -> None:
    """Note what the hosts' uptimes were when the round began; one that does not tell is none to go by."""
    ahead = await _ahead(state, hosts, ())
    begin = state.begin or 0.0
    state.uptimes = {host: round(begin + ahead_s, 3) for host, ahead_s in ahead.items()}


async def find_begin(state: RoundState, hosts: Sequence[Host], so_far: RoundSoFar) -> None:
    """Tell the state of a round that is taken up when that began, as far as one of its hosts knows."""
    ahead = await _ahead(state, hosts, PAUSES_S)
    begins = [state.uptimes[host] - ahead_s for host, ahead_s in ahead.items() if host in state.uptimes]
    if begins and so_far.seen and so_far.seen.time_s is not None:
        elapsed_s = now() - min(begins) - so_far.seen.time_s
        if -INEXACT_S <= elapsed_s <= LATEST_S:  # else all were rebooted
            state.go_on(so_far, max(0.0, elapsed_s))


async def _ahead(state: RoundState, hosts: Sequence[Host], pauses_s: Sequence[float]) -> dict[str, float]:
    """Host -> by how much its uptime is more than `now()`, of those that tell it."""
    transports = {node.host: hosts[node.rank].transport for node in state.nodes}

    async def ahead(host: str) -> float:
        return await with_backoff(partial(_ahead_s, transports[host]), pauses_s, is_passing)

    return values_of(await on_all(list(transports), ahead))


async def _ahead_s(transport: Transport) -> float:
    begin = now()
    answer = (await checked(transport, ASK, timeout=TIMEOUT_S)).stdout
    try:
        return float(answer.split()[0]) - (begin + now()) / 2
    except (ValueError, IndexError):
        raise FlagPerfError(f"its uptime is no number: {answer[:80]!r}", where=transport.host) from None
