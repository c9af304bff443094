"""A straggler among eight real ranks is named, with what it takes longer for; among eight that are alike none is."""

from __future__ import annotations

from pathlib import Path

from run_benchmarks.results.stragglers import stragglers
from tests.benchmarks.driver.slow_rank import RANKS, train


def test_a_rank_that_is_slowed_is_named(tmp_path: Path) -> None:
    finished, logs = train(tmp_path / "slowed", slow_rank=3)
    assert finished["rank_times"]["steps"] == finished["global_steps"]
    assert [len(finished["rank_times"][part]) for part in ("forward", "optimizer", "data")] == [RANKS] * 3
    (named,) = stragglers(finished, RANKS)
    assert (named.rank, named.node, named.part) == (3, 0, "forward")
    assert named.seconds > 0.2 > named.median_s
    assert named.note(["10.1.2.2"]).startswith("straggler: rank 3 on 10.1.2.2 works ")
    times = {**finished["rank_times"], "forward": [0.01] * RANKS}
    assert stragglers({**finished, "rank_times": times}, RANKS) == []  # it was that which named it
    assert "rank_times" not in (logs / "rank3.out.log").read_text()  # a rank's log grows by nothing


def test_none_is_named_where_all_are_alike(tmp_path: Path) -> None:
    finished, _ = train(tmp_path / "alike")
    assert finished["rank_times"]["steps"] == finished["global_steps"]
    assert stragglers(finished, RANKS) == []
