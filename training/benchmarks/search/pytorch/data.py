"""The images as the driver's loader takes them: (images uint8 in channels-last memory, labels)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from benchmarks.common.arrays import Array
from benchmarks.common.sample_files import SampleFiles
from benchmarks.driver.batches import Batch
from benchmarks.driver.case import Dataset
from benchmarks.driver.sampling import SHUFFLED_TOGETHER, Samples
from benchmarks.search.images import (
    IMAGES,
    LABELS,
    TRAINING_FOLDER,
    VALIDATION_FOLDER,
    ImageFacts,
    shard_files,
)

# What stands for a pixel of 0 to 255: -1 to 1.
PIXEL_SCALE = 127.5


@dataclass(frozen=True)
class ImageData:
    """Both sets of a data directory, as squares of one size.

    Attributes:
        facts: of it.
        size: height and width of what is cut out of the stored images: in training anywhere, in validation the middle.
        flips: a training image is mirrored, or not, by chance.
        seed: what chance follows from, besides the samples themselves.
    """

    data_dir: Path
    facts: ImageFacts
    size: int
    flips: bool
    seed: int

    def training(self) -> Dataset:
        """Cut out and mirrored by chance, otherwise in every epoch."""
        return self._dataset(TRAINING_FOLDER, self._augmented)

    def validation(self) -> Dataset:
        """The middle of each image."""
        return self._dataset(VALIDATION_FOLDER, self._middle)

    def _dataset(self, folder: str, prepared: Callable[[Array, Samples], Array]) -> Dataset:
        files: SampleFiles = shard_files(self.data_dir / folder, SHUFFLED_TOGETHER)

        def batch(samples: Samples) -> Batch:
            columns = files.read(samples)
            images = torch.from_numpy(np.ascontiguousarray(prepared(columns[IMAGES], samples)))
            labels = torch.from_numpy(columns[LABELS].astype(np.int64))
            inputs = (images.permute(0, 3, 1, 2), labels)
            count = len(samples)
            return Batch(inputs, samples=count, tokens=None, flops=None, loss_counts=(float(count),))

        return Dataset(files.rows, batch, shards=len(files.files))

    def _augmented(self, images: Array, samples: Samples) -> Array:
        if not len(samples):
            return self._middle(images, samples)
        place = (samples.epoch, int(samples.shards[0]), int(samples.rows[0]))
        random, size = np.random.default_rng([self.seed, *place]), self.size
        tops = random.integers(0, images.shape[1] - size + 1, len(images))
        lefts = random.integers(0, images.shape[2] - size + 1, len(images))
        directions = random.choice((1, -1), len(images)) if self.flips else np.ones(len(images), int)
        cut = np.empty((len(images), size, size, images.shape[3]), np.uint8)
        for row, image, top, left, direction in zip(cut, images, tops, lefts, directions, strict=True):
            row[...] = image[top : top + size, left : left + size][:, ::direction]
        return cut

    def _middle(self, images: Array, _: Samples) -> Array:
        top, left = (images.shape[1] - self.size) // 2, (images.shape[2] - self.size) // 2
        return images[:, top : top + self.size, left : left + self.size]


def network_input(images: Tensor) -> Tensor:
    """(B, channels, height, width) uint8 -> float of -1 to 1."""
    return images.float() / PIXEL_SCALE - 1
