"""Images -> shards: the story of a preparation, and its command."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import open_memmap
from sklearn.datasets import load_digits

from benchmarks.common.arrays import Array
from benchmarks.common.preparation.command import Preparation
from benchmarks.common.preparation.partial import Done, Facts, PartialDataset
from benchmarks.common.preparation.recipe import RecipeParameters, parameter
from benchmarks.common.preparation.workers import Workers
from benchmarks.search.images import MODEL, TRAINING_FOLDER, VALIDATION_FOLDER, ImageFacts, shard_paths
from benchmarks.search.prepare import TOOL
from benchmarks.search.prepare.folders import (
    SOURCES,
    LabelledImage,
    class_names,
    content_digest,
    decoded,
    images_of,
)
from utils import manifest

DIGITS_HELD_OUT = 360  # the last, mostly written by other people
DIGITS_BRIGHTNESS = 15  # scikit-learn's pixels are 0 to 16


@dataclass(frozen=True)
class Parameters(RecipeParameters):
    """Everything that decides the samples, besides the images."""

    size: int = parameter(256, "height and width of a stored image; training cuts its own size out", 8, 4096)
    shard_images: int = parameter(4096, "images of a shard, at most", 1, 1 << 20)
    seed: int = parameter(1, "of the order in which training images are dealt to shards", 0, 2**32)


DEMO = Parameters(size=8)
"""scikit-learn's digits, which are of this size."""


@dataclass(frozen=True)
class Inputs:
    """What is read: a folder of images, or None for scikit-learn's digits."""

    images: Path | None
    parameters: Parameters

    def recipe(self, workers: int) -> dict[str, Any]:
        """What decides the data set: equal recipes make equal files. Reads every input once."""
        recipe: dict[str, Any] = {"tool": TOOL, **asdict(self.parameters), "images": "scikit-learn's digits"}
        if self.images is not None:
            everything = [image for _, images in self.sets() for image in images]
            recipe["images"] = f"sha256:{content_digest(everything, self.images, workers)}"
        return recipe

    def sets(self) -> Iterator[tuple[str, list[LabelledImage]]]:
        """Folder and images of each set of the folder of images."""
        assert self.images is not None  # noqa: S101 - for mypy
        names = class_names(self.images)
        for folder, source in zip((TRAINING_FOLDER, VALIDATION_FOLDER), SOURCES, strict=True):
            yield folder, images_of(self.images / source, names)


@dataclass(frozen=True)
class Shard:
    """A shard to be made: its place among all of its set, and its images."""

    folder: str
    number: int
    count: int
    images: tuple[LabelledImage, ...]


@dataclass(frozen=True)
class MakeShard:
    """Decode the images of a shard."""

    partial: PartialDataset
    size: int

    def __call__(self, shard: Shard) -> Done:
        def make(paths: Sequence[Path]) -> Facts:
            shape = (len(shard.images), self.size, self.size, 3)
            table: Any = open_memmap(paths[0], "w+", np.uint8, shape)  # type: ignore[no-untyped-call]
            for row, image in zip(
                table, decoded([each.path for each in shard.images], self.size), strict=True
            ):
                row[...] = image
            table.flush()
            np.save(paths[1], np.array([each.label for each in shard.images], np.uint16))
            return {"samples": len(shard.images)}

        outputs = [self.partial.data / path for path in shard_paths(shard.folder, shard.number, shard.count)]
        return self.partial.step(f"{shard.folder}_{shard.number:05d}", outputs, make)


class SearchPreparation(Preparation[Inputs]):
    """Shards of decoded images."""

    model, tool, source = MODEL, TOOL, "images"
    about = "Make a search's data from folders of images, one a class (ImageNet's)."
    usual, demo = Parameters(), DEMO

    def make(self, inputs: Inputs, partial: PartialDataset, pool: Workers) -> tuple[Facts, Sequence[Done]]:
        """A shard depends on the images and the parameters only, never on the number of workers."""
        if inputs.images is None:
            return _digits(partial)
        size, shards = inputs.parameters.size, list(_shards(inputs))
        done = pool.map("decode", MakeShard(partial, size), shards)
        counts = {
            folder: sum(len(shard.images) for shard in shards if shard.folder == folder)
            for folder in (TRAINING_FOLDER, VALIDATION_FOLDER)
        }
        classes = len(class_names(inputs.images))
        return _facts(classes, (size, size, 3), counts[TRAINING_FOLDER], counts[VALIDATION_FOLDER]), done

    def inputs(self, options: argparse.Namespace, parameters: Parameters) -> Inputs:
        return Inputs(None if options.demo else options.images.resolve(), parameters)

    def add_options(self, parser: argparse.ArgumentParser, action: Any) -> None:
        action.add_argument(
            "--images", type=Path, metavar="DIR", help="DIR/train/<class>/<image> and DIR/val/<class>/<image>"
        )

    def summary(self, made: manifest.Manifest) -> list[str]:
        facts = made.facts
        return [
            f"images      {facts['height']} x {facts['width']} x {facts['channels']}, {facts['classes']} classes",
            f"samples     {facts['training_samples']} training, {facts['validation_samples']} validation",
        ]


main = SearchPreparation().main


def _shards(inputs: Inputs) -> Iterator[Shard]:
    """Training images are shuffled first, so that a shard holds all classes."""
    for folder, images in inputs.sets():
        order: Array = np.arange(len(images))
        if folder == TRAINING_FOLDER:
            order = np.random.default_rng(inputs.parameters.seed).permutation(len(images))
        count = -(-len(images) // inputs.parameters.shard_images)
        for number, part in enumerate(np.array_split(order, count)):
            yield Shard(folder, number, count, tuple(images[index] for index in part))


def _digits(partial: PartialDataset) -> tuple[Facts, Sequence[Done]]:
    images, labels = load_digits(return_X_y=True)
    shaped = (images.reshape(-1, 8, 8, 1) * DIGITS_BRIGHTNESS).astype(np.uint8)
    split = len(images) - DIGITS_HELD_OUT
    parts = {TRAINING_FOLDER: slice(0, split), VALIDATION_FOLDER: slice(split, None)}
    done = [
        _written(partial, folder, shaped[part], labels[part].astype(np.uint16))
        for folder, part in parts.items()
    ]
    return _facts(10, shaped.shape[1:], split, DIGITS_HELD_OUT), done


def _written(partial: PartialDataset, folder: str, images: Array, labels: Array) -> Done:
    def write(paths: Sequence[Path]) -> Facts:
        np.save(paths[0], images)
        np.save(paths[1], labels)
        return {}

    return partial.step(folder, [partial.data / path for path in shard_paths(folder, 0, 1)], write)


def _facts(classes: int, shape: Sequence[int], training: int, validation: int) -> Facts:
    height, width, channels = map(int, shape)
    facts = asdict(ImageFacts(classes, height, width, channels, training, validation))
    del facts["digest"]
    return facts
