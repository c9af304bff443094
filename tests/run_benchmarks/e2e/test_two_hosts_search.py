"""A search on two real hosts in containers: a worker that is killed is started again, and the search is measured."""

from __future__ import annotations

from collections.abc import Callable

from tests.lab.fixtures import LabFactory
from tests.run_benchmarks.e2e.harness import Bench
from tests.run_benchmarks.e2e.searching import RANK, Searching, values
from tests.run_benchmarks.e2e.setup import BASE_IMAGE
from tests.run_benchmarks.faults.seen import Seen, fault
from utils.search.events import SearchEvent

TRIALS = 12  # more than one worker does while the other starts anew


@fault("search-rank")
def test_a_worker_that_is_killed_is_started_again(
    lab: LabFactory, search_image: str, bench: Callable[..., Bench], seen: Seen
) -> None:
    hosts = lab(hosts=2, images=[search_image, BASE_IMAGE])
    search = Searching(hosts, bench(["h1", "h2"], **hosts.env))
    search.configure(TRIALS, lost_after_s=600)  # who is killed is missed by its launcher
    with search.under_way() as process:
        search.signal(2, "KILL", RANK)
        seen.made()
    ended = search.bench.ended(process)

    seen.run(ended.folder)
    events = search.measured(ended, 1, 2)
    sessions = [value["session"] for value in values(events, SearchEvent.WORKER) if value["worker"] == 1]
    assert max(sessions) >= 2, "it has joined again"
    ends = values(events, SearchEvent.TRIAL_END)
    assert {value["worker"] for value in ends if value["state"] == "done"} == {0, 1}
