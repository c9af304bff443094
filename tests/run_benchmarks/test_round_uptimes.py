"""A round that is taken up has gone on for as long as its hosts' uptimes say, whatever the controller's clock says."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from run_benchmarks.hosts.base import Host
from run_benchmarks.names import nodes_of
from run_benchmarks.results.controller import DIED, LostController
from run_benchmarks.results.folder import RoundKey
from run_benchmarks.resumption import RoundSoFar
from run_benchmarks.round import Round
from run_benchmarks.round_state import TIME_UNKNOWN, RoundState
from run_benchmarks.round_uptimes import ASK, find_begin
from run_benchmarks.stages.clock import Uptime
from run_benchmarks.transports.base import ByteSink, ByteSource
from run_benchmarks.transports.local import LocalTransport
from tests.fakes.runtime import FakeRuntime
from tests.run_benchmarks.builders import make_case, observed
from tests.run_benchmarks.one_round import make_session, result_file, run_round
from utils.records import Stage

DAYS_S = 2 * 86_400.0
UPTIMES = {  # when the round began
    "h1": Uptime("b1", 1000.0),
    "h2": Uptime("b2", 5000.0),
    "h4": Uptime("b4", 7000.0),
    "h5": Uptime("b5", 9000.0),
}
TRUE = {host: f"{each.boot} {each.seconds + 70.0} 1.0" for host, each in UPTIMES.items()}


class HostWithUptime(LocalTransport):
    """This machine, which says another uptime: a FAKE of hosts that were rebooted, or of a later moment."""

    def __init__(self, host: str, says: str) -> None:
        super().__init__(host)
        self.says = says

    async def _run(
        self, argv: tuple[str, ...], stdin: ByteSource | None, stdout: ByteSink
    ) -> tuple[int, str]:
        return await super()._run(("echo", self.says) if argv == ASK else argv, stdin, stdout)


def own_uptime() -> tuple[str, float]:
    """This machine's boot, and the seconds since."""
    boot, uptime = (Path(path).read_text().split()[0] for path in ASK[1:])
    return boot, float(uptime)


def taken_up(says: Mapping[str, str], set_s: float = 0.0, seen_s: float | None = 10.0) -> RoundState:
    """A round that was seen at its 10th second, a minute before by a clock that has been set by `set_s` since."""
    case = make_case(list(says))
    times = {"launch": 2.0, "train": 40.0}
    seen = replace(
        observed(case),
        time_s=seen_s,
        times=times,
        uptimes={host: UPTIMES[host] for host in says},
        unwatched_s=1.0,
    )
    seen_at = time.time() - 60.0 - set_s
    died = LostController(DIED, seen_at + 20.0)
    so_far = RoundSoFar(RoundKey(seen.case, 1), "train", seen, seen_at, Stage.TRAIN, controller=died)
    state = RoundState.taken_up(case, so_far)
    state.nodes = nodes_of(case, 1)
    hosts = [Host(name, name, HostWithUptime(name, says[name])) for name in says]
    asyncio.run(find_begin(state, hosts, so_far))
    state.note_time()
    return state


@pytest.mark.parametrize("set_s", [0.0, -20.0, -DAYS_S, DAYS_S])
@pytest.mark.parametrize(
    "second", ["b2 5070.0 1.0", "b3 3.0 1.0", "b3 9000.0 1.0", "b2 no", "b2 nan 1.0", "b2 inf 1.0", ""]
)
def test_a_controllers_clock_that_was_set_changes_nothing(set_s: float, second: str) -> None:
    """The second host says the same as the first, was booted anew, just now or long since, or does not say."""
    state = taken_up({"h1": "b1 1070.0 9.9", "h2": second}, set_s)
    assert state.time_s == pytest.approx(70.0, abs=15.0)
    assert state.times == {"launch": 2.0, "train": pytest.approx(100.0, abs=15.0)}
    assert state.unwatched_s == pytest.approx(41.0, abs=15.0)
    assert not state.notes


@pytest.mark.parametrize("says", ["b1 no", "b1", "", "b3 3.0 1.0", "b3 9000.0 1.0", "b1 nan 1.0"])
def test_where_no_host_knows_it_is_noted_once_and_nobody_is_held_to_it(says: str) -> None:
    state = taken_up(dict.fromkeys(UPTIMES, says), DAYS_S)
    state.note_time()
    assert state.time_s is None and state.times == {"launch": 2.0, "train": 40.0}
    assert state.notes == [TIME_UNKNOWN]


@pytest.mark.parametrize("lie", ["b4 93470.0 1.0", "b4 7012.0 1.0", "b4 1e9 1.0"])
@pytest.mark.parametrize("others", [("h1", "h2"), ("h1", "h2", "h5")])
def test_one_host_that_says_otherwise_than_most_is_not_believed(others: Sequence[str], lie: str) -> None:
    state = taken_up({"h4": lie, **{host: TRUE[host] for host in others}})
    assert state.time_s == pytest.approx(70.0, abs=15.0)
    assert state.notes == ["by the uptimes of h4 the round began at another time than by most others'"]


@pytest.mark.parametrize(
    "says",
    [
        {"h1": TRUE["h1"], "h2": "b2 91470.0 1.0"},
        {"h1": "b1 91470.0 1.0", "h2": TRUE["h2"]},
        {"h1": TRUE["h1"], "h2": "b2 1e12 1.0"},
        {"h1": TRUE["h1"], "h2": "b2 5012.0 1.0"},
        {"h1": TRUE["h1"], "h2": "b2 91470.0 1.0", "h4": "b4 8000.0 1.0"},
        {"h1": TRUE["h1"], "h2": TRUE["h2"], "h4": "b4 93470.0 1.0", "h5": "b5 95470.0 1.0"},
        {"h1": TRUE["h1"], "h2": TRUE["h2"], "h4": "b4 7012.0 1.0", "h5": "b5 9012.0 1.0"},
    ],
)
def test_where_no_more_than_half_of_the_hosts_agree_it_is_not_known(says: Mapping[str, str]) -> None:
    """A round would be ended by its deadline, or its time be too short, by a word that others contradict."""
    state = taken_up(says)
    assert state.time_s is None and state.times == {"launch": 2.0, "train": 40.0}
    assert state.notes == [
        "the uptimes of the round's hosts do not agree on when it began",
        TIME_UNKNOWN,
    ]


def test_what_one_who_took_it_up_did_not_know_the_next_does_not_know_either() -> None:
    assert taken_up({"h1": "b1 1070.0 9.9", "h2": "b2 5070.0 1.0"}, seen_s=None).notes == [TIME_UNKNOWN]


@pytest.mark.parametrize("set_s", [-DAYS_S, DAYS_S])
def test_a_round_asks_its_hosts_when_it_is_taken_up(set_s: float, tmp_path: Path) -> None:
    session = make_session(tmp_path, FakeRuntime())
    (case,) = session.plan.cases
    boot, uptime = own_uptime()
    uptimes = dict.fromkeys(case.hosts, Uptime(boot, uptime - 500.0))
    seen = replace(observed(case), time_s=10.0, times={}, uptimes=uptimes)
    begun = RoundSoFar(RoundKey(seen.case, 1), "train", seen, time.time() - 490.0 - set_s, Stage.TRAIN)
    asyncio.run(asyncio.wait_for(Round(session, case, 1, begun).run(), timeout=60))
    session.journal.close()
    result = json.loads(result_file(tmp_path).read_text())
    assert (
        499.0 < result["figures"]["round_time"]["value"] < 560.0 and 489.0 < result["times"]["train"] < 550.0
    )


def test_the_uptimes_at_its_begin_stand_in_what_was_seen_of_a_round(tmp_path: Path) -> None:
    run_round(tmp_path, FakeRuntime())
    seen = json.loads(result_file(tmp_path).with_name("round.json").read_text())
    boot, uptime = own_uptime()
    assert set(seen["uptimes"]) == set(seen["hosts"])
    assert {each["boot"] for each in seen["uptimes"].values()} == {boot}
    assert all(each["seconds"] + seen["time_s"] <= uptime + 1.0 for each in seen["uptimes"].values())
