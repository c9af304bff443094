"""What is shown of a search that goes on: lines of the log, rows of the panel."""

from __future__ import annotations

from dataclasses import replace

import pytest

from run_benchmarks.display.drawing import figure_rows
from run_benchmarks.display.lines import PlainLines
from run_benchmarks.display.node_rows import node_rows
from run_benchmarks.display.search import news_of, numbers_of_search, search_line
from run_benchmarks.history.live import courses
from run_benchmarks.round_state import RoundState
from run_benchmarks.search_state import SearchState
from tests.run_benchmarks.conftest import LogLines
from tests.run_benchmarks.display.rounds import round_of
from tests.run_benchmarks.results.search.searched import search_case
from tests.search_log import end, epoch, start, trial, two_trials, worker
from utils.events import Event, EventName
from utils.search.events import SearchRecord, event_of

LINE = (
    "search: epoch 3, trial 2, best accuracy 0.9000, 0.0000775 TOP/s, 2 of 2 workers, 4.8% of their time without a "
    "trial, at most 6:30 left"
)


def state_of(records: list[SearchRecord]) -> SearchState:
    state = SearchState()
    for record in records:
        state.take(event_of(record, 1))
    return state


def test_a_line_says_what_it_has_come_to_and_is_read_again() -> None:
    now = state_of(two_trials()[:8]).now()
    assert now is not None
    assert search_line(now) == LINE
    assert numbers_of_search(LINE) == {"step": 3.0, "accuracy": 0.9, "TOP/s": 0.0000775}
    assert numbers_of_search("search: no more") == {}


def test_of_a_search_that_has_ended_nobody_is_said_to_be_missing_nor_time_to_be_left() -> None:
    now = state_of(two_trials()).now()
    assert now is not None and now.workers == 0
    line = search_line(now)
    assert line == (
        "search: epoch 4, trial 2, best accuracy 0.9000, 0.0000465 TOP/s, 2 workers, 26.8% of their time without a "
        "trial, ended after 6:50"
    )
    assert numbers_of_search(line)["step"] == 4
    events = [event_of(record, 1) for record in two_trials()]
    progress = round_of(["h1", "h2"], Event(EventName.INIT_START), *events, measures=True)
    rows = {row.label: row.text for row in figure_rows(progress)}
    assert (rows["search"], rows["workers"]) == ("ended after 6:50", "2, 26.8% waiting")


def test_the_page_of_a_run_that_goes_on_draws_it() -> None:
    charts = courses([f"2026-01-02 03:04:05,678\t[INFO]\t[lines.py,42]{LINE}"])
    assert [chart.title for chart in charts] == ["accuracy", "TOP/s"]


def test_what_is_none_of_its_events_is_passed_over() -> None:
    state = state_of(two_trials()[:8])
    before = state.now()
    state.take(Event("EPOCH", {"trial": "x" * 1000}))
    state.take(Event("EPOCH", {**event_of(epoch(300.0, 1, 0, 2), 1).value, "accuracy": 7.0}))
    state.take(Event("WHATEVER", {}))
    assert state.now() == before
    assert news_of(Event("WORKER", {"worker": "?"})) == ""


def test_workers_that_are_none_of_the_plans_are_not_counted() -> None:
    state = RoundState(search_case(), 1, "").training.search
    for record in (start(), *(worker(0.0, number) for number in range(5))):
        state.take(event_of(record, 1))
    now = state.now()
    assert now is not None
    assert (now.workers, now.planned, len(state.account.workers)) == (2, 2, 2)


def test_what_trials_say_at_length_is_not_held_while_the_round_goes_on() -> None:
    edited = replace(trial(1.0, 1, 0), edits=("deepen relu_12",) * 20)
    state = state_of([start(), worker(0.0, 0), edited, replace(end(2.0, 1, 0), reason="x" * 500)])
    [held] = state.account.trials.values()
    assert held.end is not None
    assert (held.start.edits, held.end.reason) == ((), "")


def test_workers_that_come_and_go_and_trials_that_fail_are_told_at_once(log_lines: LogLines) -> None:
    lost = replace(worker(300.0, 1, "lost"), reason="no heartbeat for 30 s")
    failed = replace(end(300.0, 1, 0, 1, state="failed"), reason="out of memory")
    lines, progress = PlainLines(), round_of(["h1", "h2"], measures=True)
    lines.round_started(progress.nodes, progress.training)
    for record in (start(), worker(0.0, 0), worker(0.0, 1), lost, failed):
        progress.training.update(event_of(record, 1))
        lines.event(event_of(record, 1))
    assert log_lines.messages == [
        "worker 0 of node 0: joined",
        "worker 1 of node 1: joined",
        "worker 1 of node 1: lost (no heartbeat for 30 s)",
        "trial 1 failed on worker 0 (out of memory)",
    ]


def test_the_panel() -> None:
    events = [event_of(record, 1) for record in two_trials()[:9]]
    progress = round_of(["h1", "h2"], Event(EventName.INIT_START), *events, measures=True)
    rows = {row.label: row.text for row in figure_rows(progress)}
    assert rows["search"] == "at most 6:30 left"
    assert rows["trials"] == "2, 1 under way"
    assert rows["accuracy"] == "0.9000 in trial 2"
    assert rows["score"] == "0.0000775 TOP/s"
    assert rows["workers"] == "2 of 2, 4.8% waiting"
    words = [row.words for row in node_rows(progress, 5)]
    assert words == ["node 0: trial 1, epoch 2 of 2", "node 1: waiting for a trial"]


@pytest.mark.parametrize("records", [[], [worker(0.0, 0)]])
def test_nothing_is_shown_before_its_controller_has_begun(records: list[SearchRecord]) -> None:
    assert state_of(records).now() is None
