"""BERT's data reading, batches and metric."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.bert.arrays import pretraining_arrays
from benchmarks.bert.flops import training_flops
from benchmarks.bert.pytorch.case import Case
from benchmarks.bert.pytorch.inputs import make_inputs
from benchmarks.bert.shape import BertConfig
from benchmarks.bert.shards import EVALUATION_FILE, TYPES, open_shard, training_files
from benchmarks.common.sample_files import SampleFiles
from benchmarks.common.shape import configured
from benchmarks.driver.batches import Batch
from benchmarks.driver.loader import Loader
from benchmarks.driver.pytorch.case import Context
from benchmarks.driver.sampling import Samples
from tests.benchmarks.bert.shard_files import TINY_MODEL, random_rows, write_data, write_shard
from utils.parameters import TrainingSettings

SHARDS = (7, 5, 6)


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_data(tmp_path_factory.mktemp("data"), shards=SHARDS, evaluation=11)


def _case(data_dir: Path, **settings: Any) -> Case:
    driver = TrainingSettings(train_batch_size=3, eval_batch_size=4, **settings)
    return Case(Context(data_dir, driver, TINY_MODEL, torch.device("cpu")))


def _loader(data_dir: Path, rank: int = 0, world_size: int = 1) -> Loader:
    case = _case(data_dir)
    return Loader(case, case.task.driver, rank, world_size)


def test_a_mapped_shard_equals_a_compressed_one(tmp_path: Path) -> None:
    rows = random_rows(9, seed=1)
    write_shard(tmp_path / "plain.hdf5", rows)
    write_shard(tmp_path / "packed.hdf5", rows, compression="gzip", chunks=True)
    plain, packed = open_shard(tmp_path / "plain.hdf5"), open_shard(tmp_path / "packed.hdf5")
    assert isinstance(plain["input_ids"], np.memmap)
    assert not isinstance(packed["input_ids"], np.memmap)
    for key in TYPES:
        np.testing.assert_array_equal(plain[key], rows[key])
        np.testing.assert_array_equal(packed[key], rows[key])


def test_rows_are_read_from_many_shards_in_the_order_asked_for(data_dir: Path) -> None:
    files = SampleFiles(training_files(data_dir), open_shard, keep=1)
    samples = Samples(0, np.array([2, 0, 2, 1]), np.array([5, 0, 1, 4]))
    read = files.read(samples)
    for place, (shard, row) in enumerate(zip(samples.shards, samples.rows, strict=True)):
        for key in TYPES:
            np.testing.assert_array_equal(
                read[key][place], random_rows(SHARDS[shard], seed=int(shard))[key][row]
            )


@pytest.mark.parametrize("shape", [(4,), (4, 1)])
def test_arrays_by_hand(shape: tuple[int, ...]) -> None:
    rows = {
        "input_ids": np.array(
            [[1, 9, 8, 2, 0, 0], [1, 7, 2, 0, 0, 0], [1, 2, 3, 4, 2, 0], [1, 5, 5, 2, 0, 0]], "i4"
        ),
        "input_mask": np.array(
            [[1] * 4 + [0] * 2, [1] * 3 + [0] * 3, [1] * 5 + [0], [1] * 4 + [0] * 2], "i1"
        ),
        "segment_ids": np.array([[0, 0, 1, 1, 0, 0]] * 4, "i1"),
        "masked_lm_positions": np.array([[1, 2, 0], [1, 0, 0], [0, 0, 0], [2, 0, 0]], "i4"),
        "masked_lm_ids": np.array([[11, 12, 0], [13, 0, 0], [0, 0, 0], [14, 0, 0]], "i4"),
        "next_sentence_labels": np.array([0, 1, 0, 1], "i1").reshape(shape),
    }
    arrays = pretraining_arrays(rows)
    assert arrays.input_ids.shape == (4, 5)  # the padding that no sample needs is cut
    assert arrays.lengths.tolist() == [4, 3, 5, 4]
    assert arrays.positions.tolist() == [[0, 1, 2], [0, 1, 0], [0, 0, 0], [0, 2, 0]]
    assert arrays.labels.tolist() == [11, 12, 13, 14]
    assert arrays.label_places.tolist() == [1, 2, 4, 10]
    assert arrays.next_sentence_labels.tolist() == [0, 1, 0, 1]

    ragged = make_inputs(arrays, ragged=True)
    assert ragged.input_ids.tolist() == [1, 9, 8, 2, 1, 7, 2, 1, 2, 3, 4, 2, 1, 5, 5, 2]
    assert ragged.position_ids.tolist() == [0, 1, 2, 3, 0, 1, 2, 0, 1, 2, 3, 4, 0, 1, 2, 3]
    assert ragged.looked_at[ragged.label_places].tolist() == [1, 2, 5, 14]
    assert ragged.layout.bias is None
    rectangle = make_inputs(arrays, ragged=False)
    assert rectangle.looked_at[rectangle.label_places].tolist() == [1, 2, 6, 17]
    assert rectangle.layout.bias is not None
    hidden = torch.isinf(rectangle.layout.bias[:, 0, 0]).sum(dim=1)
    assert hidden.tolist() == [1, 2, 0, 1]


def _labels(batches: list[Batch]) -> list[tuple[int, ...]]:
    """Something that tells samples apart: their first tokens."""
    return [
        tuple(row)
        for batch in batches
        for row in batch.inputs.input_ids.view(batch.samples, -1)[:, :6].tolist()
    ]


@pytest.mark.parametrize("world_size", [1, 2, 3])
def test_ranks_train_on_every_sample_once_an_epoch(data_dir: Path, world_size: int) -> None:
    steps = 18 // 3 // world_size
    seen: list[tuple[int, ...]] = []
    for rank in range(world_size):
        for step in itertools.islice(_loader(data_dir, rank, world_size).training_steps(), steps):
            seen += _labels(list(step))
    expected = [
        tuple(row)
        for shard, rows in enumerate(SHARDS)
        for row in random_rows(rows, shard)["input_ids"][:, :6]
    ]
    assert sorted(seen) == sorted(tuple(int(token) for token in row) for row in expected)


@pytest.mark.parametrize("world_size", [1, 2, 4, 16])
def test_evaluation_counts_every_sample_and_label_once(data_dir: Path, world_size: int) -> None:
    batches = [
        batch
        for rank in range(world_size)
        for batch in _loader(data_dir, rank, world_size).evaluation_batches()
    ]
    rows = random_rows(11, seed=99)
    assert sum(batch.samples for batch in batches) == 11
    assert sum(batch.tokens or 0 for batch in batches) == rows["input_mask"].sum()
    labels = torch.cat([batch.inputs.labels for batch in batches]).tolist()
    assert labels == rows["masked_lm_ids"][rows["masked_lm_positions"] > 0].tolist()
    config = configured(BertConfig, TINY_MODEL)
    expected = training_flops(
        config, rows["input_mask"].sum(axis=1), (rows["masked_lm_positions"] > 0).sum(axis=1)
    )
    assert sum(batch.flops or 0.0 for batch in batches) == pytest.approx(expected)


class _Scripted(torch.nn.Module):
    """FAKE, in the model's place: logits that are right for known labels."""

    def forward(self, inputs: Any) -> tuple[torch.Tensor, torch.Tensor]:
        answers = torch.nn.functional.one_hot(inputs.labels.clone().fill_(6), 60).float() * 9
        pairs = torch.zeros(inputs.layout.batch, 2)
        pairs[:, 1] = 1.0
        return answers, pairs


def test_metrics_are_means_over_all_labels_and_not_of_batches(data_dir: Path) -> None:
    case = _case(data_dir)
    sums = sum(case.evaluate(_Scripted(), batch.inputs) for batch in _loader(data_dir).evaluation_batches())
    assert isinstance(sums, torch.Tensor)
    metrics = case.metrics(sums.tolist())
    rows = random_rows(11, seed=99)
    labels = rows["masked_lm_ids"][rows["masked_lm_positions"] > 0]
    assert metrics["mlm_accuracy"] == pytest.approx((labels == 6).mean())
    assert metrics["nsp_accuracy"] == pytest.approx(rows["next_sentence_labels"].mean())


def test_the_baseline_is_the_share_of_the_commonest_label(data_dir: Path) -> None:
    rows = random_rows(11, seed=99)
    labels = rows["masked_lm_ids"][rows["masked_lm_positions"] > 0].tolist()
    assert _case(data_dir).baseline() == pytest.approx(max(map(labels.count, labels)) / len(labels))


def test_any_file_names_are_shards_and_evaluation_is_not_among_them(data_dir: Path) -> None:
    assert [path.name for path in training_files(data_dir)] == [f"part_{n}.hdf5" for n in range(3)]
    assert (data_dir / EVALUATION_FILE).exists()


@pytest.mark.parametrize("ragged", [True, False])
def test_rows_are_padded_on_devices_without_ragged_attention(data_dir: Path, ragged: bool) -> None:
    """Whatever the device is: the framework knows many, and few of them have such kernels."""
    context = Context(data_dir, TrainingSettings(), TINY_MODEL, torch.device("meta"), ragged)
    inputs = Case(context).inputs(pretraining_arrays(random_rows(3, seed=1)))
    assert (inputs.layout.ragged is not None) == ragged
