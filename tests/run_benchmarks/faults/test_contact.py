"""Contact with a host is lost for a while: training goes on, and the result is whole."""

from __future__ import annotations

import time

import pytest

from tests.run_benchmarks.faults.pairs import Pair
from tests.run_benchmarks.faults.seen import Seen, fault

OUTAGE_S = 20
STEPS = 300  # half a minute


@pytest.mark.parametrize(
    "host",
    [pytest.param(2, marks=fault("cut-short")), pytest.param(1, marks=fault("cut-short-first"))],
)
def test_a_cable_that_is_put_back_costs_nothing(host: int, pair: Pair, seen: Seen) -> None:
    pair.configure(STEPS)
    with pair.training() as process:
        pair.lab.cut(host)
        seen.made()
        time.sleep(OUTAGE_S)
        assert process.poll() is None
        pair.lab.heal(host)
    ended = pair.bench.ended(process)

    seen.run(ended.folder)
    pair.assert_whole(ended, STEPS)


@fault("sshd")
def test_sshd_is_killed_and_started_again(pair: Pair, seen: Seen) -> None:
    pair.configure(STEPS)
    with pair.training() as process:
        pair.lab.kill_sshd(2)
        seen.made()
        time.sleep(8)
        assert process.poll() is None
        pair.lab.start_sshd(2)
    ended = pair.bench.ended(process)

    seen.run(ended.folder)
    assert "contact is back" in ended.output
    pair.assert_whole(ended, STEPS)
