"""Samples in many files: which files there are, and the rows that a batch needs of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.common.arrays import Array
from benchmarks.common.prepare_command import prepare_command
from benchmarks.driver.sampling import SHUFFLED_TOGETHER, Samples
from utils.errors import FlagPerfError

Columns = dict[str, Array]
"""The arrays of a file, each (samples, ...)."""


def files_in(folder: Path, pattern: str, *, model: str) -> list[Path]:
    """The files of a training or evaluation set, sorted by name.

    Args:
        folder: where they stand.
        pattern: of their names.
        model: folder of the case below `benchmarks`, whose `prepare` makes them.

    Raises:
        FlagPerfError: there is none.
    """
    files = sorted(folder.glob(pattern))
    if not files:
        raise FlagPerfError(
            f"no {pattern} file",
            where=str(folder),
            remedy=f"give the data's right directory, or prepare them {prepare_command(model)}",
        )
    return files


def unreadable(path: Path, why: str) -> FlagPerfError:
    """The error of a file of samples that is missing, cut off or of another form."""
    return FlagPerfError(
        f"cannot read these samples: {why}",
        where=str(path),
        remedy="copy the file again, or prepare the data again",
    )


@dataclass
class SampleFiles:
    """Rows of many files; the `keep` files used last stay open.

    Attributes:
        files: in their order.
        open_file: gives a file's arrays, best mapped into memory; raises FlagPerfError.
    """

    files: Sequence[Path]
    open_file: Callable[[Path], Columns]
    keep: int = SHUFFLED_TOGETHER

    def __post_init__(self) -> None:
        self._open: dict[int, Columns] = {}

    def rows(self, number: int) -> int:
        """Number of samples in a file."""
        return len(next(iter(self._columns(number).values())))

    def read(self, samples: Samples) -> Columns:
        """The arrays of `samples`, in their order, each (len(samples), ...)."""
        groups = [(number, np.flatnonzero(samples.shards == number)) for number in np.unique(samples.shards)]
        if len(groups) == 1:
            columns = self._columns(int(groups[0][0]))
            return {key: np.asarray(array[samples.rows]) for key, array in columns.items()}
        read: Columns = {}
        for number, places in groups:
            for key, array in self._columns(int(number)).items():
                if key not in read:
                    read[key] = np.empty((len(samples), *array.shape[1:]), dtype=array.dtype)
                read[key][places] = array[samples.rows[places]]
        return read

    def _columns(self, number: int) -> Columns:
        columns = self._open.pop(number, None)
        if columns is None:
            columns = self.open_file(self.files[number])
            while len(self._open) >= self.keep:
                self._open.pop(next(iter(self._open)))
        self._open[number] = columns  # now the one used last
        return columns
