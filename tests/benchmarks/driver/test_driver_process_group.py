"""The few numbers that ranks exchange: exact on backends that do not add in fp64. The other rank is a FAKE."""

from __future__ import annotations

from math import inf, isnan, nan

import pytest
import torch
import torch.distributed as dist

from benchmarks.driver.pytorch.devices import Device
from benchmarks.driver.pytorch.process_group import ProcessGroup
from benchmarks.driver.ranks import RankEnvironment


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> ProcessGroup:
    """Rank 0 of two, before it has met the other."""
    made = ProcessGroup(RankEnvironment(), "gloo", Device("cpu", 0), 60)
    made.world_size = 2
    return made


def other_rank(values: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    def all_gather(parts: list[torch.Tensor], own: torch.Tensor) -> None:
        assert own.dtype == torch.uint8, "which every backend carries as it is"
        parts[0].copy_(own)
        parts[1].copy_(torch.tensor(values, dtype=torch.float64).view(torch.uint8))

    monkeypatch.setattr(dist, "all_gather", all_gather)


def test_a_time_and_a_count_that_fp32_cannot_hold_are_exact(
    group: ProcessGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    other_rank([1.7e9 + 0.25, 1.0], monkeypatch)
    assert group.max_of([1.7e9, 2.0]) == [1.7e9 + 0.25, 2.0]
    assert group.sum_of([0.0, 2.0**24]) == [1.7e9 + 0.25, 2.0**24 + 1]


def test_nothing_and_what_is_no_number(group: ProcessGroup, monkeypatch: pytest.MonkeyPatch) -> None:
    other_rank([], monkeypatch)
    assert group.sum_of([]) == []
    other_rank([nan, inf], monkeypatch)
    largest, total = group.max_of([1.0, 1.0]), group.sum_of([1.0, 1.0])
    assert isnan(largest[0]) and isnan(total[0]) and largest[1] == total[1] == inf
