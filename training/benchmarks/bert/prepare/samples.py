"""Instances as arrays: the compact form between the parts and the shards, and the padded form of a shard."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import h5py
import numpy as np

from benchmarks.bert.prepare.instances import Instance
from benchmarks.common.arrays import Array, spans, starts

_RAGGED = {"ids": "lengths", "positions": "counts", "labels": "counts"}
"""Columns with a varying number of values a sample, and the column that says how many."""
AT_ONCE = 10_000  # samples
_SCALARS = ("lengths", "first_lengths", "counts", "random_next")


@dataclass
class Collector:
    """Gathers instances, 4 bytes a token."""

    columns: dict[str, array[int]] = field(
        default_factory=lambda: {name: array("i") for name in (*_RAGGED, *_SCALARS)}
    )

    def add(self, instance: Instance) -> None:
        columns = self.columns
        columns["ids"].extend(instance.ids)
        columns["positions"].extend(instance.masked_positions)
        columns["labels"].extend(instance.masked_ids)
        columns["lengths"].append(len(instance.ids))
        columns["first_lengths"].append(instance.first_length)
        columns["counts"].append(len(instance.masked_ids))
        columns["random_next"].append(int(instance.is_random_next))

    @property
    def count(self) -> int:
        return len(self.columns["lengths"])

    def samples(self) -> Samples:
        return Samples({name: _array(column) for name, column in self.columns.items()})


@dataclass(frozen=True)
class Samples:
    """Columns of samples; ragged ones are flat, one sample after the other."""

    columns: dict[str, Array]

    @property
    def count(self) -> int:
        return len(self.columns["lengths"])

    @property
    def tokens(self) -> int:
        """Tokens that are not padding."""
        return int(self.columns["lengths"].sum(dtype=np.int64))

    def take(self, order: Sequence[int]) -> Samples:
        """The samples `order`, in that order."""
        chosen = np.asarray(order, np.int64)
        taken = {name: self.columns[name][chosen] for name in _SCALARS}
        for name, sizes in _RAGGED.items():
            begins = starts(self.columns[sizes])[chosen]
            taken[name] = _gathered(self.columns[name], begins, taken[sizes])
        return Samples(taken)

    def padded(self, seq_length: int, max_predictions: int) -> dict[str, Array]:
        """The six arrays of the MLPerf layout: (count, seq_length), (count, max_predictions), (count,)."""
        lengths, counts = self.columns["lengths"], self.columns["counts"]
        place = np.arange(seq_length)
        mask = place < lengths[:, None]
        return {
            "input_ids": _filled(self.columns["ids"], mask),
            "input_mask": mask,
            "segment_ids": mask & (place >= self.columns["first_lengths"][:, None]),
            "masked_lm_positions": _filled(
                self.columns["positions"], np.arange(max_predictions) < counts[:, None]
            ),
            "masked_lm_ids": _filled(self.columns["labels"], np.arange(max_predictions) < counts[:, None]),
            "next_sentence_labels": self.columns["random_next"],
        }

    def save(self, path: Path) -> None:
        with h5py.File(path, "w") as file:
            for name, column in self.columns.items():
                file.create_dataset(name, data=column, dtype=_narrow(column))


def load(path: Path, start: int, stop: int) -> Samples:
    """The samples `start` to `stop` of a file written by `save`."""
    with h5py.File(path, "r") as file:
        columns = {name: file[name][start:stop] for name in _SCALARS}
        for name, sizes in _RAGGED.items():
            before = int(file[sizes][:start].sum(dtype=np.int64))
            columns[name] = file[name][before : before + int(columns[sizes].sum(dtype=np.int64))]
    return Samples(columns)


def concatenated(pieces: Iterable[Samples]) -> Samples:
    columns = [piece.columns for piece in pieces]
    return Samples({name: np.concatenate([c[name] for c in columns]) for name in (*_RAGGED, *_SCALARS)})


def _array(column: array[int]) -> Array:
    return np.frombuffer(column, np.int32) if column else np.empty(0, np.int32)


def _gathered(values: Array, begins: Array, sizes: Array) -> Array:
    """The spans of `values` that begin at `begins`, one after the other."""
    gathered = np.empty(int(sizes.sum(dtype=np.int64)), values.dtype)
    filled = 0
    for low in range(0, len(begins), AT_ONCE):  # the indices of all at once would take twice the room
        indices = spans(begins[low : low + AT_ONCE], sizes[low : low + AT_ONCE])
        gathered[filled : filled + len(indices)] = values[indices]
        filled += len(indices)
    return gathered


def _filled(values: Array, where: Array) -> Array:
    result = np.zeros(where.shape, np.int32)
    result[where] = values
    return result


def _narrow(column: Array) -> str:
    return "u2" if column.size == 0 or int(column.max()) < 1 << 16 else "i4"
