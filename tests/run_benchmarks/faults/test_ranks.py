"""What happens to a rank on one of two hosts: the round says which rank it was, and what its log says of it."""

from __future__ import annotations

import pytest

from tests.run_benchmarks.e2e.harness import ENDLESS
from tests.run_benchmarks.faults.pairs import Pair, made_in_rank
from tests.run_benchmarks.faults.seen import Seen, fault

RAISES = """\
if rank == 1 and step == 20:
    fault()
    raise ArithmeticError("the sum of this rank is wrong")
"""
LEAVES = """\
if rank == {rank} and step == 20:
    fault()
    raise SystemExit(0)
"""
EATS = """\
if rank == 1 and step == 20:
    fault()
    eaten = []
    while True:
        eaten.append(bytearray(b"x" * 2**22))
"""


@fault("raises")
def test_a_rank_raises(pair: Pair, seen: Seen) -> None:
    pair.configure(1000, RAISES)
    ended = pair.bench.run()

    made_in_rank(seen, ended.folder)
    seen.run(ended.folder)
    failure = pair.assert_in_order(ended)["failure"]
    assert "rank 1" in failure["message"] and "the sum of this rank is wrong" in failure["message"]
    assert "ArithmeticError" in failure["evidence"]


@pytest.mark.parametrize(
    "rank", [pytest.param(1, marks=fault("leaves")), pytest.param(0, marks=fault("leaves-first"))]
)
def test_a_rank_leaves_too_early_with_0(rank: int, pair: Pair, seen: Seen) -> None:
    pair.configure(1000, LEAVES.format(rank=rank))
    ended = pair.bench.run()

    made_in_rank(seen, ended.folder)
    seen.run(ended.folder)
    failure = pair.assert_in_order(ended)["failure"]
    assert f"rank {rank}" in failure["message"] and "before its peers were done" in failure["message"]


@fault("memory")
def test_the_kernel_kills_a_rank_at_the_containers_limit(pair: Pair, seen: Seen) -> None:
    pair.configure(1000, EATS, ACCE_CONTAINER_OPT="--memory=200m --memory-swap=200m")
    ended = pair.bench.run()

    made_in_rank(seen, ended.folder)
    seen.run(ended.folder)
    failure = pair.assert_in_order(ended)["failure"]
    assert "SIGKILL" in failure["message"] and "its memory is limited to 200 MiB" in failure["message"], (
        failure
    )


@fault("nan")
def test_the_loss_of_a_training_is_no_number_any_more(pair: Pair, seen: Seen) -> None:
    """BERT itself, by the shared driver."""
    pair.bench.vendor_config("cpux2x1", {**ENDLESS, "learning_rate": 1e30, "warmup_steps": 1})
    pair.bench.test(CASES={"bert:pytorch:cpu:2:1:1": str(pair.data)})
    process = pair.bench.start()
    with pair.going_on(process):
        pair.wait_for_stage(process, "train")
        seen.made()
    ended = pair.bench.ended(process)

    seen.run(ended.folder)
    assert "DivergedError" in pair.assert_in_order(ended)["failure"]["evidence"]
