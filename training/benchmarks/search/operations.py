"""Operations of a network, counted from its layers by the rule of AIPerf (Ren et al. 2021, arXiv:2008.07141).

A multiplication with its addition counts 2, an addition 1, a comparison 1, a division 4, an exponential 8. H and W are
the height and width that a layer gives, but for pooling and normalisation, where they are what it takes; k is the
kernel, s the stride, Ci and Co are the channels that it takes and gives.

    layer                 forward                    backward
    convolution           2 H W k^2 Ci Co            k^2 Ci Co (4 H W + 2); of the images k^2 Ci Co (2 H W + 2)
    batch normalisation   7 H W C                    36
    ReLU, addition        H W C                      -
    maximum pooling       H W C k^2 / s^2            -
    global pooling        (H W - 1) C + 4 C          -
    dense                 2 Ci Co                    4 Ci Co + 2 (Ci + 1) Co
    softmax (the output)  8 C + (C - 1) + 4 C        -
    dropout               -                          -

The backward pass counts the products for both gradients and the update of the weights; the images need no gradient. The
36 of a normalisation, whatever its size, are what AIPerf's own count comes to: its published figures of ResNet-50
hold with them alone.
"""

from __future__ import annotations

from typing import NamedTuple

from benchmarks.search.architecture import Architecture
from benchmarks.search.layers import (
    IMAGES,
    Add,
    AnyLayer,
    BatchNorm,
    Conv,
    Dense,
    GlobalPool,
    MaxPool,
    Relu,
    Shape,
)

DIVISION, EXPONENTIAL = 4, 8
BATCH_NORM_BACKWARD = 36


class Operations(NamedTuple):
    """Of one sample."""

    forward: int
    backward: int

    @property
    def training(self) -> int:
        """Forward and backward."""
        return self.forward + self.backward


def operations_of(architecture: Architecture) -> Operations:
    """What the network computes for one image, the softmax of its output included."""
    counts = [
        layer_operations(layer, architecture.inputs_of(layer)[0], architecture.shapes[layer.id])
        for layer in architecture.layers
    ]
    classes = architecture.classes
    softmax = EXPONENTIAL * classes + (classes - 1) + DIVISION * classes
    return Operations(
        sum(count.forward for count in counts) + softmax, sum(count.backward for count in counts)
    )


def layer_operations(layer: AnyLayer, taken: Shape, given: Shape) -> Operations:
    """What one layer computes for one image."""
    match layer:
        case Conv():
            weights = layer.kernel**2 * taken.channels * given.channels
            pixels = given.height * given.width
            gradients = 2 if layer.inputs == (IMAGES,) else 4
            return Operations(2 * pixels * weights, weights * (gradients * pixels + 2))
        case Dense():
            weights = taken.channels * given.channels
            return Operations(2 * weights, 4 * weights + 2 * (weights + given.channels))
        case BatchNorm():
            return Operations(7 * taken.size, BATCH_NORM_BACKWARD)
        case Relu() | Add():
            return Operations(taken.size, 0)
        case MaxPool():
            return Operations(taken.size * layer.kernel**2 // layer.stride**2, 0)
        case GlobalPool():
            return Operations(taken.size - taken.channels + DIVISION * taken.channels, 0)
        case _:
            return Operations(0, 0)
