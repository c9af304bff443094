"""Folders of images, one a class: what is there, and one image as a shard holds it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from benchmarks.common.arrays import Array
from benchmarks.common.preparation.bars import progress
from benchmarks.search.images import MOST_CLASSES
from utils.errors import FlagPerfError
from utils.manifest import sha256_of

LEAST_CLASSES = 2  # where there is but one every answer is right
SOURCES = ("train", "val")  # as ImageNet is unpacked: train/<class>/<image>, val/<class>/<image>


@dataclass(frozen=True)
class LabelledImage:
    """An image file, and the number of its class."""

    path: Path
    label: int


def class_names(images: Path) -> list[str]:
    """Of both sets, sorted: a label is a place in it.

    Raises:
        FlagPerfError: there are fewer than two, too many, or the two sets have others.
    """
    train, val = ({path.name for path in _entries(images / name) if path.is_dir()} for name in SOURCES)
    if train != val or not LEAST_CLASSES <= len(train) <= MOST_CLASSES:
        other = sorted(train ^ val)
        why = f"train/ and val/ differ in {len(other)} classes: {', '.join(other[:3])}" if other else ""
        raise FlagPerfError(
            why
            or f"train/ has {len(train)} folders, one a class; {LEAST_CLASSES} to {MOST_CLASSES} can be had",
            where=str(images),
            remedy="give a folder with train/<class>/<image> and val/<class>/<image>, the same classes in both",
        )
    return sorted(train)


def images_of(folder: Path, names: Sequence[str]) -> list[LabelledImage]:
    """All images of a set, by class and name; FlagPerfError where a class has none."""
    found = []
    for label, name in enumerate(names):
        paths = [path for path in _entries(folder / name) if path.is_file()]
        if not paths:
            raise FlagPerfError("holds no image", where=str(folder / name), remedy="see that all is unpacked")
        found += [LabelledImage(path, label) for path in paths]
    return found


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(Path(entry) for entry in os.scandir(folder) if not entry.name.startswith("."))
    except OSError as error:
        raise FlagPerfError(
            f"cannot be read: {error.strerror}",
            where=str(folder),
            remedy="give a folder with train/<class>/<image> and val/<class>/<image>",
        ) from None


def content_digest(images: Sequence[LabelledImage], root: Path, workers: int) -> str:
    """SHA-256 over the name and the content of every image; reads all of them."""

    def line(image: LabelledImage) -> str:
        try:
            return f"{sha256_of(image.path)} {image.path.relative_to(root)}\n"
        except OSError as error:
            raise _unusable(image.path, error) from None

    digest = hashlib.sha256()
    with ThreadPoolExecutor(workers) as pool:
        for text in progress("check the input", len(images), pool.map(line, images)):
            digest.update(os.fsencode(text))
    return digest.hexdigest()


def decoded(paths: Sequence[Path], size: int) -> Iterator[Array]:
    """Each image's square middle, scaled to (size, size, 3) uint8; FlagPerfError for a file that is no image."""
    for path in paths:
        try:
            with Image.open(path) as image:
                image.draft("RGB", (2 * size, 2 * size))  # a JPEG is decoded no larger than this needs
                square = ImageOps.fit(image.convert("RGB"), (size, size), Image.Resampling.BICUBIC)
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
            raise _unusable(path, error) from None
        yield np.asarray(square, np.uint8)


def _unusable(path: Path, error: Exception) -> FlagPerfError:
    return FlagPerfError(f"no image can be read: {error}", where=str(path), remedy="mend it, or leave it out")
