"""What two networks are compared by; where it is the same of both, they are duplicates.

What counts are the layers of the main chain that have a width or a window, for normalisations and ReLUs come with them,
and the skip connections between them (Jin, Song and Hu 2019, Auto-Keras, arXiv:1806.10282).
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from benchmarks.search.architecture import Architecture
from benchmarks.search.layers import IMAGES, Add, AnyLayer, Conv, Dense, MaxPool


class Step(NamedTuple):
    """A layer of the main chain: its kind, and the numbers by which two of that kind differ."""

    kind: str
    numbers: tuple[int, ...]


class SkipConnection(NamedTuple):
    """From behind so many steps of the longest path, over so many."""

    start: int
    length: int


class Description(NamedTuple):
    """What is compared of a network."""

    steps: tuple[Step, ...]
    skips: tuple[SkipConnection, ...]


@lru_cache(maxsize=2048)
def description_of(architecture: Architecture) -> Description:
    """What is compared of a network. An addition ends a skip connection, which began where it left the main chain."""
    chain = {layer.id for layer in architecture.main_chain}
    behind, origin = {IMAGES: 0}, {IMAGES: IMAGES}  # by layer: steps up to it; where it left the main chain
    skips = []
    for layer in architecture.layers:
        longest = architecture.longest_inputs[layer.id]
        behind[layer.id] = behind[longest] + (_step(layer) is not None)
        origin[layer.id] = layer.id if layer.id in chain else origin[longest]
        if isinstance(layer, Add):
            first, second = layer.inputs
            start = behind[origin[second if longest == first else first]]
            skips.append(SkipConnection(start, max(0, behind[layer.id] - start)))
    steps = (_step(layer) for layer in architecture.main_chain)
    return Description(tuple(step for step in steps if step), tuple(sorted(skips)))


def _step(layer: AnyLayer) -> Step | None:
    match layer:
        case Conv(channels=channels, kernel=kernel, stride=stride):
            return Step(layer.kind, (channels, kernel, stride))
        case MaxPool(kernel=kernel, stride=stride):
            return Step(layer.kind, (kernel, stride))
        case Dense(units=units):
            return Step(layer.kind, (units,))
        case _:
            return None
