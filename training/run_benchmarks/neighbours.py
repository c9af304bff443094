"""What runs on a round's hosts beside its task: looked for while it trains and when it ends.

What other runs did is in its figures; what its monitor did not see is missing in them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress

from run_benchmarks.host_log import log_of_host
from run_benchmarks.hosts.base import Host
from run_benchmarks.names import unit_name
from run_benchmarks.round_state import RoundState
from run_benchmarks.runtimes.base import UnitState
from run_benchmarks.session import Session, in_time
from run_benchmarks.stages.checks import named, runs_of
from utils.errors import FlagPerfError

ANSWER_S = 10.0
MOST_RUNS = 100  # that are remembered of a host
EVERY_S = 60.0  # a listing costs a host less than its monitor does in that time


async def watch_for_neighbours(
    session: Session, state: RoundState, hosts: Iterable[Host], every_s: float = EVERY_S
) -> None:
    """Look on all hosts now and then, until this is cancelled."""
    while True:
        await look_for_neighbours(session, state, hosts)
        await asyncio.sleep(every_s)


async def look_for_neighbours(session: Session, state: RoundState, hosts: Iterable[Host]) -> None:
    """Look on those of the hosts that are in reach."""
    there = (host for host in hosts if host.name not in state.lost)
    await asyncio.gather(*(_look(session, state, host) for host in there))


async def _look(session: Session, state: RoundState, host: Host) -> None:
    """Remember whose units run on a host now, and that its monitor does not: one that does not answer costs nothing."""
    try:
        units = await in_time(session.runtime.list_units(host.transport), ANSWER_S)
    except (FlagPerfError, asyncio.TimeoutError) as error:
        why = error.message if isinstance(error, FlagPerfError) else str(error)
        if host.name not in state.unlisted:
            log_of_host("WARNING", host.name, f"whether another run uses it is not known: {why}")
        state.unlisted.add(host.name)
        return
    await _note_failed_monitor(session, state, host, units)
    runs = {run for run in runs_of(unit for unit in units if unit.running) if run != session.run.uid}
    if runs:
        seen = state.neighbours.setdefault(host.name, set())
        new = sorted(runs - seen)[: MOST_RUNS - len(seen)]
        seen.update(new)
        if new:  # a controller that takes the round up would not know of those that have gone by then
            of_round = {"case": state.case.settings.name, "round": state.number}
            session.journal.write("neighbours", **of_round, host=host.name, runs=new)


async def _note_failed_monitor(
    session: Session, state: RoundState, host: Host, units: Sequence[UnitState]
) -> None:
    """Say that the round's monitor failed on a host. One that has nothing to sample ends at once, and well."""
    own = {unit_name(session.run, node, "monitor") for node in state.nodes if node.host == host.name}
    said = f"{host.name}: its monitor ended before the round did"
    if any(note.startswith(said) for note in state.notes):
        return
    ended = {unit.name for unit in units if not unit.running}  # a host may list one any number of times
    for name in own & ended:
        with suppress(FlagPerfError, asyncio.TimeoutError):  # the next look asks again
            if code := await in_time(session.runtime.wait(host.transport, name), ANSWER_S):
                state.warn(f"{said}, with exit code {code}: what it would have sampled since is in no figure")


def notes_on_neighbours(state: RoundState) -> list[str]:
    """A note for each host on which another run was seen."""
    return [
        f"{host} was shared, figures are doubtful: units of {named(runs)} ran there too"
        for host, runs in state.neighbours.items()
    ]
