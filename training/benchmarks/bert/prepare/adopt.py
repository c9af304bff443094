"""A manifest for a data set that was prepared elsewhere (MLPerf's own, as users have it on disk)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from benchmarks.bert import shards
from benchmarks.bert.prepare import TOOL
from benchmarks.common.preparation.workers import Workers
from utils import manifest
from utils.errors import FlagPerfError

BESIDE = (  # listed if they are there
    "vocab.txt",
    "bert_config.json",
    "model.ckpt-28252.safetensors",
)


def adopt(directory: Path, *, workers: int) -> manifest.Manifest:
    """Check the form of every HDF5 file of `directory` and write its manifest.

    FlagPerfError names a file that is missing from the numbered shards, cut short or of another form.
    """
    training = _training_files(directory)
    evaluation = directory / shards.EVALUATION_FILE
    if not evaluation.is_file():
        raise FlagPerfError("there is no evaluation set", where=str(evaluation), remedy="put it there")
    with Workers.started(workers) as pool:
        shapes = pool.map("check the files", shards.shape_of, [*training, evaluation])
    if len({shape[1:] for shape in shapes}) > 1:
        raise FlagPerfError(
            "files of several sequence lengths or prediction counts", where=str(directory), remedy=_REMEDY
        )
    files = [*training, evaluation, *(path for name in BESIDE if (path := directory / name).is_file())]
    entries = manifest.describe(
        directory, [str(path.relative_to(directory)) for path in files], workers=workers
    )
    facts = {"train_samples": sum(shape[0] for shape in shapes[:-1]), "eval_samples": shapes[-1][0]}
    parameters = {
        "origin": "found, not made here",
        "seq_length": shapes[0][1],
        "max_predictions": shapes[0][2],
    }
    result = manifest.Manifest("bert", TOOL, parameters, facts, entries)
    try:
        manifest.write(directory, result)
    except OSError as error:
        raise FlagPerfError(
            f"the manifest cannot be written: {error.strerror}",
            where=str(directory),
            remedy="give the command as a user who may write there",
        ) from None
    return result


_REMEDY = "keep the files of one preparation only in one directory"


def _training_files(directory: Path) -> list[Path]:
    folder = directory / shards.TRAINING_FOLDER
    files = sorted(folder.glob("*.hdf5"))
    if not files:
        raise FlagPerfError("there is no training file (*.hdf5)", where=str(folder), remedy="put them there")
    _check_numbers(files)
    return files


def _check_numbers(files: Sequence[Path]) -> None:
    """FlagPerfError if shards named `part_<i>_of_<n>.hdf5` are not the n shards of one set."""
    numbered = [match for path in files if (match := re.fullmatch(r"part_(\d+)_of_(\d+)\.hdf5", path.name))]
    counts = {int(match[2]) for match in numbered}
    folder = str(files[0].parent)
    if len(counts) > 1:
        raise FlagPerfError(f"shards of several sets: of {sorted(counts)}", where=folder, remedy=_REMEDY)
    for count in counts:
        absent = sorted(set(range(count)) - {int(match[1]) for match in numbered})
        if absent:
            raise FlagPerfError(
                f"{len(absent)} of {count} shards are missing: {absent[:8]}",
                where=folder,
                remedy="copy the missing files",
            )
