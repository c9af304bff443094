"""The images of a search on disk: shards of decoded images, as `benchmarks.search.prepare` writes them.

training/images_<i>_of_<n>.npy      uint8 (images, height, width, channels), 0 to 255
training/labels_<i>_of_<n>.npy      uint16 (images,): the number of each one's class, from 0
validation/...                      the same
manifest.json                       with the facts of `ImageFacts`
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.arrays import Array
from benchmarks.common.prepare_command import prepare_command
from benchmarks.common.sample_files import Columns, SampleFiles, files_in, unreadable
from utils import manifest
from utils.errors import FlagPerfError

TRAINING_FOLDER = "training"
VALIDATION_FOLDER = "validation"
IMAGES, LABELS = "images", "labels"  # the arrays of a shard
MOST_CLASSES = 2**16
MODEL = "search"


@dataclass(frozen=True)
class ImageFacts:
    """What a search must know of its data. height, width, channels: of a stored image. digest: names the data."""

    classes: int
    height: int
    width: int
    channels: int
    training_samples: int
    validation_samples: int
    digest: str = ""


def read_facts(data_dir: Path) -> ImageFacts:
    """From the manifest of a prepared data set.

    Raises:
        FlagPerfError: there is none, or it is of other data.
    """
    made = manifest.read(data_dir)
    names = [field.name for field in fields(ImageFacts) if field.name != "digest"]
    values: dict[str, Any] = {name: made.facts.get(name) for name in names}
    wrong = [name for name, value in values.items() if type(value) is not int or value < 1]
    if made.dataset != MODEL or wrong:
        raise FlagPerfError(
            f"no images of a search: the manifest is of {made.dataset!r}, without {', '.join(wrong) or 'gaps'}",
            where=str(data_dir),
            remedy=prepare_command(MODEL),
        )
    return ImageFacts(**values, digest=made.digest)


def shard_paths(folder: str, number: int, count: int) -> tuple[str, str]:
    """Of the images and of the labels of a shard, below the data directory."""
    ending = f"{number:05d}_of_{count:05d}.npy"
    return f"{folder}/{IMAGES}_{ending}", f"{folder}/{LABELS}_{ending}"


def shard_files(folder: Path, keep: int) -> SampleFiles:
    """The shards of a training or validation set, of which `keep` stay open; FlagPerfError where there is none."""
    return SampleFiles(files_in(folder, f"{IMAGES}_*.npy", model=MODEL), open_shard, keep)


def open_shard(images_path: Path) -> Columns:
    """The arrays of a shard, mapped: the ranks of a host share what is cached.

    Raises:
        FlagPerfError: a file is missing, cut off or not of this form.
    """
    labels_path = images_path.with_name(images_path.name.replace(IMAGES, LABELS, 1))
    images, labels = _mapped(images_path), _mapped(labels_path)
    if images.ndim != 4 or images.dtype != np.uint8:
        raise unreadable(images_path, f"it holds {images.dtype} of shape {images.shape}")
    if labels.shape != images.shape[:1] or labels.dtype != np.uint16:
        raise unreadable(labels_path, f"it holds {labels.dtype} of shape {labels.shape}")
    return {IMAGES: images, LABELS: labels}


def _mapped(path: Path) -> Array:
    try:
        array: Array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise unreadable(path, str(error)) from error
    return array
