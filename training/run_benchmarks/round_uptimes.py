"""How long a round has gone on whose controller died, by its hosts' uptimes.

A wall clock may be set meanwhile, and that of another machine is another. An uptime only grows, as long as the host
is not booted anew: then it has another boot ID.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from run_benchmarks.hosts.base import Host
from run_benchmarks.results.clocks import QUARTZ_DRIFT
from run_benchmarks.results.preflight_fold import hosts_text
from run_benchmarks.resumption import RoundSoFar
from run_benchmarks.round_state import RoundState
from run_benchmarks.session import now
from run_benchmarks.stages.clock import LATEST_S, LONGEST_BOOT, Uptime
from run_benchmarks.stages.fan_out import on_all, values_of
from run_benchmarks.transports.backoff import is_passing, with_backoff
from run_benchmarks.transports.base import Transport, checked
from utils.errors import FlagPerfError

ASK = ("cat", "/proc/sys/kernel/random/boot_id", "/proc/uptime")  # proc(5)
TIMEOUT_S = 5.0
PAUSES_S = (1.0,)
INEXACT_S = TIMEOUT_S  # an uptime is of a moment between question and answer


async def note_uptimes(state: RoundState, hosts: Sequence[Host]) -> None:
    """Note what the hosts' uptimes were when the round began; one that does not tell is none to go by."""
    begin = state.begin or 0.0
    ahead = await _ahead(state, hosts, ())
    state.uptimes = {
        host: replace(each, seconds=round(begin + each.seconds, 3)) for host, each in ahead.items()
    }


async def find_begin(state: RoundState, hosts: Sequence[Host], so_far: RoundSoFar) -> None:
    """Tell the state of a round that is taken up when that began, as far as one of its hosts knows."""
    ahead = await _ahead(state, hosts, PAUSES_S)
    begins = {
        host: begun.seconds - ahead[host].seconds
        for host, begun in state.uptimes.items()
        if host in ahead and ahead[host].boot == begun.boot
    }
    begin = _agreed(state, begins)
    if begin is not None and so_far.seen and so_far.seen.time_s is not None:
        elapsed_s = now() - begin - so_far.seen.time_s
        if elapsed_s >= -INEXACT_S:
            state.go_on(so_far, max(0.0, elapsed_s))


def _agreed(state: RoundState, begins: Mapping[str, float]) -> float | None:
    """When the round began, by what more than half of those hosts say that tell; None where no so many agree.

    No single one of several is believed: its word would end a good round.
    """
    if not begins:
        return None
    begin = statistics.median_low(begins.values())
    # each of two is inexact at both ends, and has its own quartz
    apart_s = 2 * (INEXACT_S + QUARTZ_DRIFT * max(0.0, now() - begin))
    odd = [host for host, each in begins.items() if abs(each - begin) > apart_s]
    if 2 * len(odd) >= len(begins):
        state.warn("the uptimes of the round's hosts do not agree on when it began")
        return None
    if odd:
        state.warn(
            f"by the uptimes of {hosts_text(odd)} the round began at another time than by most others'"
        )
    return begin


async def _ahead(state: RoundState, hosts: Sequence[Host], pauses_s: Sequence[float]) -> dict[str, Uptime]:
    """Host -> its boot, and by how many seconds its uptime is more than `now()`, of those that tell it."""
    transports = {node.host: hosts[node.rank].transport for node in state.nodes}

    async def ahead(host: str) -> Uptime:
        await transports[host].open()  # to log in may take longer than to answer
        return await with_backoff(partial(_ahead_of, transports[host]), pauses_s, is_passing)

    return values_of(await on_all(list(transports), ahead))


async def _ahead_of(transport: Transport) -> Uptime:
    begin = now()
    answer = (await checked(transport, ASK, timeout=TIMEOUT_S)).stdout
    try:
        boot, uptime, *_ = answer.split()
        uptime_s = float(uptime)
    except ValueError:
        uptime_s = math.nan
    if not 0 <= uptime_s <= LATEST_S:
        raise FlagPerfError(f"it does not tell its boot and uptime: {answer[:80]!r}", where=transport.host)
    return Uptime(boot[:LONGEST_BOOT], uptime_s - (begin + now()) / 2)
