"""Questions in HDF5 files: written by the preparation, read by the cases.

A file holds the columns of `Clozes`, uncompressed, and as attributes `start` and `end` (the ids of the tokens
before and after an answer) and `vocab_size` (how many ids there are, these two included).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import h5py
import numpy as np

from benchmarks.common.sample_files import files_in, unreadable
from benchmarks.glm.clozes import Clozes
from utils.errors import FlagPerfError

TRAIN_FOLDER, EVAL_FOLDER = "train", "val"
SCALARS = ("source_lengths", "blanks", "candidate_counts", "candidate_lengths", "mentions")
TYPES = {
    **dict.fromkeys(SCALARS, "i4"),
    "sources": "u4",
    "candidates": "u4",
    "exact_match": "i1",
    "f1": "f4",
    "in_query": "i1",
}


@dataclass(frozen=True)
class Vocabulary:
    """What the cases need to know of the tokens: how many ids, and which begin and end an answer."""

    size: int
    start: int
    end: int


@dataclass(frozen=True)
class ClozeSet:
    """All questions of a folder."""

    clozes: Clozes
    vocabulary: Vocabulary


def shard_name(folder: str, index: int, count: int) -> str:
    """Path of a file below the data directory."""
    return f"{folder}/part_{index:05d}_of_{count:05d}.hdf5"


def write(path: Path, clozes: Clozes, vocabulary: Vocabulary) -> None:
    """Write one file."""
    with h5py.File(path, "w") as file:
        for name, dtype in TYPES.items():
            file.create_dataset(name, data=getattr(clozes, name), dtype=dtype)
        file.attrs.update({"vocab_size": vocabulary.size, "start": vocabulary.start, "end": vocabulary.end})


def read_folder(data_dir: Path, folder: str) -> ClozeSet:
    """Every question of the files of a folder, in the order of their names.

    The whole of ReCoRD takes 0.3 GB of memory: nothing is read while training.

    Raises:
        FlagPerfError: there is no file, or one is cut off, lacks a column or has another vocabulary.
    """
    files = files_in(data_dir / folder, "*.hdf5", model="glm")
    parts = [read(path) for path in files]
    for path, part in zip(files, parts, strict=True):
        if part.vocabulary != parts[0].vocabulary:
            raise FlagPerfError(
                f"made with another vocabulary than {files[0].name}",
                where=str(path),
                remedy="keep the files of one preparation only in one directory",
            )
    return ClozeSet(joined([part.clozes for part in parts]), parts[0].vocabulary)


def read(path: Path) -> ClozeSet:
    """The questions of one file."""
    try:
        with h5py.File(path, "r") as file:
            columns = {name: np.asarray(file[name][()]) for name in TYPES}
            size, start, end = (int(file.attrs[name]) for name in ("vocab_size", "start", "end"))
    except (OSError, KeyError, ValueError) as error:
        raise unreadable(path, str(error)) from error
    return ClozeSet(Clozes(**columns), Vocabulary(size, start, end))


def joined(parts: Sequence[Clozes]) -> Clozes:
    """The questions of several, one after the other."""
    names = [field.name for field in fields(Clozes)]
    return Clozes(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})
