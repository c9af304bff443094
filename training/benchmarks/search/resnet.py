"""Residual networks, from which a search starts (He et al. 2015, arXiv:1512.03385)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.search.architecture import Architecture, Images
from benchmarks.search.layers import (
    IMAGES,
    Add,
    AnyLayer,
    BatchNorm,
    Conv,
    Dense,
    Dropout,
    GlobalPool,
    MaxPool,
    Relu,
)

EXPANSION = 4  # a block gives so many times the channels that its 3 x 3 convolution has


def resnet50(images: Images, classes: int, width: int = 64) -> Architecture:
    """ResNet-50 as first published, with the stride in a block's first convolution: 174 layers and a dropout of rate 0.

    width: channels of the first convolution. Images of less than 64 pixels keep theirs in the stem: a 3 x 3
    convolution stands in the place of the 7 x 7 one and its pooling.
    """
    return residual(images, classes, width, blocks=(3, 4, 6, 3))


def small_resnet(images: Images, classes: int, width: int = 8) -> Architecture:
    """One block at each of two sizes: a network for small images, and for processors."""
    return residual(images, classes, width, blocks=(1, 1))


def residual(images: Images, classes: int, width: int, blocks: Sequence[int]) -> Architecture:
    """A residual network with so many bottleneck blocks in each stage; every stage but the first halves the size.

    Raises:
        ArchitectureError: it has too many channels, layers or parameters.
    """
    chain = _Chain()
    small = min(images.height, images.width) < 64
    chain.conv(width, kernel=3 if small else 7, stride=1 if small else 2)
    chain.then(Relu)
    if not small:
        chain.then(MaxPool, kernel=3, stride=2)
    for stage, count in enumerate(blocks):
        for block in range(count):
            stride = 2 if stage and not block else 1
            _bottleneck(chain, width * 2**stage, stride, projected=not block)
    chain.then(GlobalPool)
    chain.then(Dropout)
    chain.then(Dense, units=classes)
    return Architecture(images, tuple(chain.layers))


@dataclass
class _Chain:
    """Layers so far; `last` is the one that the next layer takes."""

    layers: list[AnyLayer] = field(default_factory=list)
    last: int = IMAGES

    def then(self, kind: type[Any], inputs: tuple[int, ...] = (), **settings: Any) -> int:
        """The id of a further layer."""
        layer = kind(id=len(self.layers) + 1, inputs=inputs or (self.last,), **settings)
        self.layers.append(layer)
        self.last = layer.id
        return self.last

    def conv(self, channels: int, kernel: int, stride: int = 1) -> int:
        """A convolution and its batch normalisation."""
        self.then(Conv, channels=channels, kernel=kernel, stride=stride)
        return self.then(BatchNorm)


def _bottleneck(chain: _Chain, width: int, stride: int, *, projected: bool) -> None:
    """1 x 1, 3 x 3 and 1 x 1 convolutions, added to what they take; `projected`: that gets their shape first."""
    start = chain.last
    chain.conv(width, kernel=1, stride=stride)
    chain.then(Relu)
    chain.conv(width, kernel=3)
    chain.then(Relu)
    end = chain.conv(EXPANSION * width, kernel=1)
    chain.last = start
    shortcut = chain.conv(EXPANSION * width, kernel=1, stride=stride) if projected else start
    chain.then(Add, inputs=(end, shortcut))
    chain.then(Relu)
