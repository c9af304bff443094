"""Where ranks arrive far apart they meet in Paddle's store: its gloo would give up after 30 s."""

from __future__ import annotations

import os
from typing import Any

import pytest

from benchmarks.driver.paddle.devices import Device
from benchmarks.driver.paddle.process_group import ProcessGroup
from benchmarks.driver.ranks import RankEnvironment
from tests.fakes.paddle import ArrivingStore
from utils.errors import FlagPerfError


def _group(store: Any, timeout_seconds: float) -> ProcessGroup:
    group = ProcessGroup(RankEnvironment(), "gloo", Device("cpu", 0), timeout_seconds)
    group.world_size, group._store = 3, store
    return group


def test_a_rank_waits_until_all_are_there() -> None:
    store = ArrivingStore(others=2, after_looks=4)
    _group(store, 60.0).meet()
    assert (store.count, store.looks_left) == (3, 0)


def test_a_second_meeting_is_another_one() -> None:
    store = ArrivingStore(others=2, after_looks=1)
    group = _group(store, 0.1)
    group.meet()
    with pytest.raises(FlagPerfError, match=r"waited 0\.1 s for 2 other ranks"):
        group.meet()


def test_one_rank_needs_nobody() -> None:
    before = dict(os.environ)
    group = ProcessGroup(RankEnvironment(), "gloo", Device("cpu", 0), 1.0)
    group.barrier()
    assert group.sum_of([1.5, 2.0]) == [1.5, 2.0]
    assert group.max_of([1.5]) == [1.5]
    group.close()
    assert dict(os.environ) == before
