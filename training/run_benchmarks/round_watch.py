"""While a round trains: its units are waited for, what rank 0 reports is followed, and a hang is looked at."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from run_benchmarks.follow import KeptEvents, follow_events, follow_telemetry
from run_benchmarks.hosts.base import Host
from run_benchmarks.hosts.granted import Tenure
from run_benchmarks.names import FOLLOWED_EVENTS, unit_name
from run_benchmarks.neighbours import watch_for_neighbours
from run_benchmarks.round_state import RoundState
from run_benchmarks.session import Session
from run_benchmarks.stages.hang import HangWatch, Unseen, keep_stacks
from run_benchmarks.stages.launch import log_dir_inside
from run_benchmarks.stages.watch import Ended, Outcome, Watch
from run_benchmarks.stages.watch_first import WatchFirst
from utils.errors import told_of
from utils.records import Stage

# What has ended while no controller watched is heard of, also past the deadline.
SHORTEST_WATCH_S = 30.0
ANSWER_S = 5.0  # so long a task that has ended may take to say so
TIMED_OUT_CODE = 124  # of coreutils' timeout, in which every task runs (`stages.launch`)
NO_CONTACT = "no contact"  # shown in place of a node's stage


async def watch_round(
    session: Session, state: RoundState, hosts: Sequence[Host], tenure: Tenure | None = None
) -> Outcome:
    """How the round's tasks end, on `hosts` by node rank; what is seen of it goes to `state` and is shown."""
    watch = _watch(session, state, hosts, tenure)
    followers = [asyncio.create_task(work) for work in _followers(session, state, hosts)]
    begun = time.monotonic()
    try:
        left_s = _left_s(state)
        is_taken_up = left_s < state.case.deadline_s
        outcome = await watch.run(state.nodes, max(left_s, SHORTEST_WATCH_S) if is_taken_up else left_s)
        outcome = _by_deadline(outcome) if _may_be_late(state, time.monotonic() - begun) else outcome
        return replace(outcome, goes_on=outcome.timed_out and _goes_on(state))
    finally:
        if watch.hangs.stood_still_s:
            text = f"the controller stood still for {watch.hangs.stood_still_s:.0f} s while the round trained"
            state.notes.append(f"{text}: the training is not taken for hung for that")
        for follower in followers:
            follower.cancel()
        await asyncio.gather(*followers, return_exceptions=True)


async def ended_unwatched(session: Session, state: RoundState, hosts: Sequence[Host]) -> Outcome | None:
    """How the tasks of a round that is taken up had ended before that; None where they still run, or nobody says."""
    outcome = await _watch(session, state, hosts).run(state.nodes, ANSWER_S)
    if outcome.timed_out or outcome.hung_s is not None:
        return None
    return _by_deadline(outcome) if _may_be_late(state) else outcome


def _goes_on(state: RoundState) -> bool:
    """Whether rank 0 has been silent for no longer than it was between two reports before."""
    progressed_at = state.training.progressed_at
    return progressed_at is not None and state.training.pace.is_usual(time.monotonic() - progressed_at)


def _left_s(state: RoundState) -> float:
    """How long the round may still train; where that is not known, so long as any."""
    return state.case.deadline_s - state.times.get(Stage.TRAIN.value, 0.0)


def _may_be_late(state: RoundState, watched_s: float = 0.0) -> bool:
    """Whether its tasks may have gone on past their deadline while nobody watched, or who did stood still."""
    return state.time_s is None or _left_s(state) <= watched_s


def _by_deadline(outcome: Outcome) -> Outcome:
    """The outcome of tasks that nobody watched at their deadline: where `timeout` ended them, it has said so."""
    others = {
        rank: each
        for rank, each in outcome.endings.items()
        if not (isinstance(each, Ended) and each.code == TIMED_OUT_CODE)
    }
    return (
        outcome if len(others) == len(outcome.endings) else replace(outcome, endings=others, timed_out=True)
    )


def _watch(session: Session, state: RoundState, hosts: Sequence[Host], tenure: Tenure | None = None) -> Watch:
    of_search = bool(state.case.roles)
    return (WatchFirst if of_search else Watch)(
        session.runtime,
        {host.name: host.transport for host in hosts},
        {node.rank: unit_name(session.run, node, "task") for node in state.nodes},
        session.plan.cluster.host_lost_after_s,
        # of a search it shows nothing of a worker that is lost
        lambda: None if of_search else state.training.progressed_at,
        lambda node, there: session.display.stage(node, Stage.TRAIN.value if there else NO_CONTACT),
        HangWatch(
            lambda: state.training.progressed_at,
            lambda: state.training.pace.limit_s(session.plan.run.hang_timeout_s),
            lambda: _keep_stacks(session, state, hosts),
            session.plan.run.hang_timeout_s,
            lambda: tenure is not None and tenure.is_suspended,
            state.training.pace.pause,
        ),
    )


async def _keep_stacks(session: Session, state: RoundState, hosts: Sequence[Host]) -> Mapping[int, Unseen]:
    run, runtime, paths = session.plan.run, session.runtime, session.paths
    transports = {host.name: host.transport for host in hosts}
    units = {node.rank: unit_name(session.run, node, "task") for node in state.nodes}
    log_dirs = {node.rank: log_dir_inside(run, paths, runtime, node) for node in state.nodes}
    errors = await keep_stacks(runtime, transports, units, log_dirs, state.nodes)
    for node, error in errors.items():
        state.warn(f"the stacks of its ranks were not kept: {told_of(node.host, error)}")
    return {node.rank: Unseen(error.message, error.remedy) for node, error in errors.items()}


def _followers(
    session: Session, state: RoundState, hosts: Sequence[Host]
) -> Iterator[Coroutine[Any, Any, None]]:
    """What asks the nodes while they train: for rank 0's events, other runs and, where it is shown, telemetry."""
    paths, display, first = session.paths, session.display, state.nodes[0]
    state.followed = KeptEvents((session.log_dir / first.folder).parent / FOLLOWED_EVENTS)
    yield follow_events(hosts[0].transport, paths, first, state.training, display, state.followed)
    yield watch_for_neighbours(session, state, hosts)
    for node in state.nodes if display.follows_telemetry else ():
        yield follow_telemetry(hosts[node.rank].transport, paths, node, display)
