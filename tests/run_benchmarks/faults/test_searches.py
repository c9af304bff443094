"""Faults of a search on two hosts: a worker is stopped, or gone; its controller dies, or has no room."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.lab.fixtures import LabFactory
from tests.run_benchmarks.e2e.harness import Bench, Ended
from tests.run_benchmarks.e2e.searching import CONTROLLER, RANK, Events, Searching, values
from tests.run_benchmarks.e2e.setup import BASE_IMAGE
from tests.run_benchmarks.faults.seen import Seen, fault
from utils.search.events import SearchEvent

TRIALS = 10
STATE = "/var/lib/flagperf-test-state"  # CHECKPOINT_PATH
PATIENT_S = 600  # until a worker is lost: none is


@pytest.fixture
def search(lab: LabFactory, search_image: str, bench: Callable[..., Bench]) -> Searching:
    """A search on two hosts."""
    hosts = lab(hosts=2, images=[search_image, BASE_IMAGE])
    return Searching(hosts, bench(["h1", "h2"], **hosts.env))


@contextmanager
def small_disk(search: Searching, size: str) -> Iterator[None]:
    """CHECKPOINT_PATH on the first host is a file system of its own."""
    script = f"mkdir -p {STATE} && mount -t tmpfs -o size={size},mode=755 tmpfs {STATE}"
    search.lab.ssh(1, "sh", "-c", script)
    try:
        yield
    finally:
        search.lab.ssh(1, "umount", "--lazy", STATE)


@fault("search-stopped")
def test_the_trial_of_a_worker_that_is_stopped_is_handed_to_another(search: Searching, seen: Seen) -> None:
    search.configure(TRIALS, lost_after_s=10)
    with search.under_way() as process:
        search.signal(2, "STOP", RANK)
        seen.made()
    ended = search.bench.ended(process)

    seen.run(ended.folder)
    assert lost_workers(search.measured(ended, 1, 2)) == {1}


@fault("search-host")
def test_a_search_goes_on_without_a_host_that_is_lost(search: Searching, seen: Seen) -> None:
    search.configure(TRIALS, lost_after_s=10)
    search.bench.cluster(HOSTS=["h1", "h2"], HOST_LOST_AFTER=5, SSH_CONNECT_TIMEOUT=3)
    with search.under_way() as process:
        search.lab.kill(2)
        seen.made()
    ended = search.bench.ended(process)

    seen.run(ended.folder)
    assert lost_workers(search.measured(ended, 1)) == {1}
    (result,) = ended.rounds()
    assert any("h2: " in note and "the search went on without it" in note for note in result["notes"])


@fault("search-controller")
def test_what_a_search_knows_outlives_its_controller(search: Searching, seen: Seen) -> None:
    search.configure(TRIALS, PATIENT_S, CHECKPOINT_PATH=STATE)
    with search.under_way() as process:
        search.signal(1, "KILL", CONTROLLER)
        seen.made()
    ended = search.bench.ended(process)

    seen.run(ended.folder)
    assert_gone_on_with(search, ended)


@fault("search-dead")
def test_a_run_that_is_killed_is_taken_up_while_it_searches(search: Searching, seen: Seen) -> None:
    search.configure(TRIALS, PATIENT_S)
    with search.under_way() as process:
        process.kill()
        seen.made()
        assert process.wait(60) == -signal.SIGKILL
    ended = search.bench.run("resume")

    seen.run(ended.folder)
    starts = values(search.measured(ended, 1, 2), SearchEvent.SEARCH_START)
    assert [start["starts"] for start in starts] == [1], "the search itself has gone on meanwhile"


@fault("search-full")
def test_what_a_search_knows_outlives_a_full_disk(search: Searching, seen: Seen) -> None:
    """It promises nothing that it cannot keep."""
    search.configure(TRIALS, PATIENT_S, CHECKPOINT_PATH=STATE)
    with small_disk(search, "64m"):
        with search.under_way() as process:
            search.lab.ssh(1, "dd", "if=/dev/zero", f"of={STATE}/filler", "bs=4k", check=False)
            seen.made()
        ended = search.bench.ended(process)
        seen.run(ended.folder)
        search.lab.ssh(1, "rm", f"{STATE}/filler")
        assert_gone_on_with(search, ended)


def assert_gone_on_with(search: Searching, ended: Ended) -> None:
    """A run that goes on from one that has failed has all that was kept, and waits for none of its workers."""
    assert ended.code == 1 and ended.folder is not None, ended.output
    search.assert_nothing_left(ended, 1, 2)
    kept = values(search.logged(ended), SearchEvent.EPOCH)
    later = search.bench.run("run", "--continue-from", str(ended.folder))
    assert values(search.measured(later, 1, 2), SearchEvent.EPOCH)[: len(kept)] == kept


def lost_workers(events: Events) -> set[int]:
    return {value["worker"] for value in values(events, SearchEvent.WORKER) if value["state"] == "lost"}
