"""Samples as arrays: taken in any order, padded, saved and loaded in pieces."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.bert.prepare import samples
from benchmarks.bert.prepare.instances import Instance
from benchmarks.bert.prepare.samples import Collector, Samples
from tests.benchmarks.bert.prepare_data import REFERENCE


def collected(instances: list[Instance]) -> Samples:
    collector = Collector()
    for instance in instances:
        collector.add(instance)
    return collector.samples()


def same(one: Samples, other: Samples) -> bool:
    return all(np.array_equal(one.columns[name], other.columns[name]) for name in one.columns)


def test_padded_arrays_hold_an_instance_a_row() -> None:
    arrays = collected([Instance([2, 7, 3, 4, 9, 3], 3, [3], [8], False)]).padded(8, 2)
    assert {key: array.tolist() for key, array in arrays.items()} == {
        "input_ids": [[2, 7, 3, 4, 9, 3, 0, 0]],
        "input_mask": [[1, 1, 1, 1, 1, 1, 0, 0]],
        "segment_ids": [[0, 0, 0, 1, 1, 1, 0, 0]],
        "masked_lm_positions": [[3, 0]],
        "masked_lm_ids": [[8, 0]],
        "next_sentence_labels": [0],
    }


@pytest.mark.parametrize("at_once", [1, 3, 100])
def test_taking_an_order_is_collecting_in_that_order(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(samples, "AT_ONCE", at_once)
    order = [5, 0, 0, 7, 3, 2, 6]
    assert same(collected(REFERENCE).take(order), collected([REFERENCE[i] for i in order]))


def test_pieces_of_a_saved_file_joined_are_the_whole(tmp_path: Path) -> None:
    whole = collected(REFERENCE)
    whole.save(tmp_path / "samples")
    pieces = [samples.load(tmp_path / "samples", *bounds) for bounds in ((0, 3), (3, 3), (3, 8))]
    assert [piece.count for piece in pieces] == [3, 0, 5]
    assert same(samples.concatenated(pieces), whole)
    assert pieces[0].tokens == sum(len(instance.ids) for instance in REFERENCE[:3])


def test_ids_above_65535_survive_saving(tmp_path: Path) -> None:
    whole = collected([Instance([2, 70_000, 3, 9, 3], 3, [3], [100_000], True)])
    whole.save(tmp_path / "samples")
    assert same(samples.load(tmp_path / "samples", 0, 1), whole)


def test_no_samples_are_no_trouble(tmp_path: Path) -> None:
    empty = collected([])
    empty.save(tmp_path / "samples")
    assert samples.load(tmp_path / "samples", 0, 0).take([]).count == 0
    assert empty.padded(8, 2)["input_ids"].shape == (0, 8)
