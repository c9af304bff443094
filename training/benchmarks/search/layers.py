"""The layers that a searched network is made of, as data: what each takes and gives, and how many parameters it has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import Meta

IMAGES = 0  # the source of the layers that take the images themselves
MOST_CHANNELS = 2**16
MOST_STRIDE = 64
LARGEST_ID = 2**31 - 1

LayerId = Annotated[int, Meta(ge=1, le=LARGEST_ID)]
Source = Annotated[int, Meta(ge=IMAGES, le=LARGEST_ID)]
Channels = Annotated[int, Meta(ge=1, le=MOST_CHANNELS)]
Stride = Annotated[int, Meta(ge=1, le=MOST_STRIDE)]
Kernel = Literal[1, 3, 5, 7]


class Shape(NamedTuple):
    """Of one sample: maps of height x width x channels, or, where it is flat, a vector of `channels` values."""

    height: int
    width: int
    channels: int
    flat: bool = False

    @property
    def size(self) -> int:
        """Values in it."""
        return self.height * self.width * self.channels

    def __str__(self) -> str:
        return str(self.channels) if self.flat else f"{self.height} x {self.width} x {self.channels}"


class Layer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="kind"):
    """One layer. `inputs` are the layers that it takes, or IMAGES.

    `output` raises ValueError for shapes that the layer does not take.
    """

    id: LayerId
    inputs: tuple[Source]

    @property
    def kind(self) -> str:
        """What it is, as it stands in JSON."""
        return str(self.__struct_config__.tag)

    def output(self, shapes: Sequence[Shape]) -> Shape:
        """What it gives for `shapes`, one an input."""
        return shapes[0]

    def parameters(self, shapes: Sequence[Shape]) -> int:
        """How many it learns."""
        return 0


class Conv(Layer, frozen=True, tag="conv"):
    """A convolution without bias, padded by half its kernel.

    inserted: an edit put it in with a kernel of 3 x 3; the kernel is then a hyper-parameter of the trial.
    """

    channels: Channels
    kernel: Kernel
    stride: Stride = 1
    inserted: bool = False

    def output(self, shapes: Sequence[Shape]) -> Shape:
        return _windowed(shapes[0], self.stride)._replace(channels=self.channels)

    def parameters(self, shapes: Sequence[Shape]) -> int:
        return self.kernel**2 * shapes[0].channels * self.channels


class BatchNorm(Layer, frozen=True, tag="batch_norm"):
    """Batch normalisation of maps, with scale and shift."""

    def output(self, shapes: Sequence[Shape]) -> Shape:
        return _maps(shapes[0])

    def parameters(self, shapes: Sequence[Shape]) -> int:
        return 2 * shapes[0].channels


class Relu(Layer, frozen=True, tag="relu"):
    """max(x, 0)."""


class Add(Layer, frozen=True, tag="add"):
    """The sum of two layers of one shape."""

    inputs: tuple[Source, Source]  # type: ignore[assignment]  # the only layer that takes two

    def output(self, shapes: Sequence[Shape]) -> Shape:
        if shapes[0] != shapes[1]:
            raise ValueError(f"adds {shapes[0]} and {shapes[1]}")
        return shapes[0]


class MaxPool(Layer, frozen=True, tag="max_pool"):
    """The largest value of each window, padded by half the kernel."""

    kernel: Kernel
    stride: Stride

    def output(self, shapes: Sequence[Shape]) -> Shape:
        return _windowed(shapes[0], self.stride)


class GlobalPool(Layer, frozen=True, tag="global_pool"):
    """The mean of each channel: a vector."""

    def output(self, shapes: Sequence[Shape]) -> Shape:
        return Shape(1, 1, _maps(shapes[0]).channels, flat=True)


class Dropout(Layer, frozen=True, tag="dropout"):
    """Sets a value to zero with the probability `rate` while the network is trained."""

    rate: Annotated[float, Meta(ge=0, lt=1)] = 0.0


class Dense(Layer, frozen=True, tag="dense"):
    """A linear layer of a vector, with bias."""

    units: Channels

    def output(self, shapes: Sequence[Shape]) -> Shape:
        if not shapes[0].flat:
            raise ValueError(f"takes a vector, not {shapes[0]}")
        return shapes[0]._replace(channels=self.units)

    def parameters(self, shapes: Sequence[Shape]) -> int:
        return (shapes[0].channels + 1) * self.units


AnyLayer = Conv | BatchNorm | Relu | Add | MaxPool | GlobalPool | Dropout | Dense


def _maps(shape: Shape) -> Shape:
    if shape.flat:
        raise ValueError(f"takes maps, not a vector of {shape}")
    return shape


def _windowed(shape: Shape, stride: int) -> Shape:
    """What a window of any odd kernel, padded by half of it, gives: a value for every `stride` of the input's."""
    height, width, *_ = _maps(shape)
    return shape._replace(height=(height - 1) // stride + 1, width=(width - 1) // stride + 1)
