"""Ranks and nodes that hold up the others: who is named, and who is not."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from run_benchmarks.results.stragglers import LEAST_SCORE, MOST_NAMED, rank_times, scores, stragglers
from tests.run_benchmarks.builders import judge_folders, make_case, training_events, write_rank_log

STEP_S = 0.5


def facts(forward: Sequence[float], **parts: Sequence[float]) -> dict[str, Any]:
    """FINISHED of a training of 100 steps of half a second."""
    zeros = [0.0] * len(forward)
    told = {
        "steps": 10,
        "forward": list(forward),
        "optimizer": zeros,
        "data": zeros,
        "spread": zeros,
        **parts,
    }
    return {"global_steps": 100, "no_eval_time": 100 * STEP_S, "rank_times": told}


def alike(ranks: int, spread: float = 0.01, seed: int = 0) -> list[float]:
    """As chips of one kind are: 100 ms, some a little more."""
    generator = random.Random(seed)
    return [0.1 * generator.gauss(1, spread) for _ in range(ranks)]


def test_a_slow_rank_is_named_with_what_it_is_slow_in() -> None:
    waiting = [0.0] * 16
    waiting[11] = 0.05
    (named,) = stragglers(facts(alike(16), data=waiting), nproc=8)
    assert (named.rank, named.node, named.part) == (11, 1, "data")
    assert named.loss == pytest.approx(0.1, abs=0.01)
    note = named.note(["a", "b"])
    assert "rank 11 on b works" in note
    assert "it is the waiting for data, and takes 1" in note
    assert f"named from {LEAST_SCORE:g} on" in note


def test_a_node_whose_ranks_all_lag_is_named_once() -> None:
    forward = alike(64)
    forward[16:24] = [1.4 * each for each in forward[16:24]]
    forward[40] *= 1.8
    node, rank = sorted(stragglers(facts(forward), nproc=8), key=lambda each: each.node)
    assert (node.node, node.rank) == (2, None)
    assert (rank.node, rank.rank) == (5, 40)
    assert node.note(["h"] * 8).startswith("straggler: all of h works")


@pytest.mark.parametrize("ranks", [4, 8, 64, 4096])
def test_nobody_is_named_among_ranks_that_are_alike(ranks: int) -> None:
    for seed in range(200 if ranks < 100 else 5):
        assert stragglers(facts(alike(ranks, 0.02, seed)), nproc=8) == []


def test_what_costs_no_time_is_not_named() -> None:
    forward = [0.001] * 7 + [0.002]
    assert scores(forward, [0.0] * 8)[-1] > LEAST_SCORE
    assert stragglers(facts(forward), nproc=8) == []


def test_a_rank_whose_steps_vary_as_much_by_chance_is_not_named() -> None:
    """Eight processes on two CPUs, as they were seen: 9.2 ms, one 12.8, in ten steps of 70 ms."""
    forward = [0.0092, 0.0085, 0.0096, 0.0089, 0.0094, 0.0087, 0.0098, 0.0128]
    steps = {"global_steps": 100, "no_eval_time": 7.0}
    (named,) = stragglers({**facts(forward, spread=[0.0001] * 8), **steps}, nproc=8)
    assert named.rank == 7
    assert stragglers({**facts(forward, spread=[0.002] * 8), **steps}, nproc=8) == []


def test_of_a_few_ranks_nobody_can_say_who_is_late() -> None:
    assert stragglers(facts([0.1, 0.1, 0.4]), nproc=1) == []


def test_of_very_many_the_worst_are_named() -> None:
    forward = alike(2000, 0.001)
    forward[::5] = [0.2 + place / 1e5 for place in range(400)]
    named = stragglers(facts(forward), nproc=8)
    assert len(named) == MOST_NAMED
    assert named[0].rank == 1995


@pytest.mark.parametrize(
    "told",
    [
        None, [], "x", {}, {"steps": 10}, {"steps": 10, "forward": 7, "optimizer": 7, "data": 7},
        {"steps": 10, "forward": [0.1] * 8, "optimizer": [0.1] * 7, "data": [0.0] * 8, "spread": [0.0] * 8},
        {"steps": 10, "forward": [0.1] * 8, "optimizer": [0.1] * 8, "data": [0.0] * 8},
        {"steps": 10, "forward": [0.1, None] * 4, "optimizer": [0.1] * 8, "data": [0.0] * 8, "spread": [0.0] * 8},
        {"steps": 10, "forward": [0.1, -1] * 4, "optimizer": [0.1] * 8, "data": [0.0] * 8, "spread": [0.0] * 8},
        {"steps": 4, "forward": [0.1] * 8, "optimizer": [0.1] * 8, "data": [0.0] * 8, "spread": [0.0] * 8},
        {"steps": 10, "forward": [], "optimizer": [], "data": []},
    ],
)  # fmt: skip
def test_what_is_missing_or_wrong_tells_of_nobody(told: object) -> None:
    assert rank_times({"rank_times": told}) is None
    assert stragglers({**facts([0.1]), "rank_times": told}, nproc=8) == []


def test_without_steps_or_time_there_is_no_telling_what_it_costs() -> None:
    slow = [*alike(7), 0.4]
    assert stragglers(facts(slow), nproc=8) != []
    for change in ({"global_steps": 0}, {"no_eval_time": None}, {"global_steps": "many"}):
        assert stragglers({**facts(slow), **change}, nproc=8) == []


def test_a_result_names_them_and_keeps_what_names_them(tmp_path: Path) -> None:
    """8 s in 50 steps: 160 ms each, of which the fifth of eight nodes works 100, and the others 60."""
    told = facts([0.06, 0.061, 0.06, 0.059, 0.1, 0.06, 0.0605, 0.06])["rank_times"]
    folders = [tmp_path / f"h{rank}_noderank{rank}" for rank in range(8)]
    write_rank_log(folders[0], training_events(rank_times=told))
    hosts = [f"h{rank}" for rank in range(8)]
    result = judge_folders(make_case(hosts, name="toy:pytorch:X1:8:1:1"), folders)
    assert result.verdict.is_success
    (named,) = result.stragglers
    assert (named.node, named.rank) == (4, None)  # of a node with one rank it is the node
    assert [note for note in result.notes if note.startswith("straggler: all of h4 works 100 ms")]
    assert result.facts["rank_times"] == told
