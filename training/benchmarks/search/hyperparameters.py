"""Hyper-parameters of a trial that an architecture takes up: what is built, trained and counted has them in it."""

from __future__ import annotations

from msgspec import structs

from benchmarks.search.architecture import Architecture
from benchmarks.search.layers import AnyLayer, Conv, Dropout
from benchmarks.search.protocol import Hyperparameters


def trained(architecture: Architecture, hyperparameters: Hyperparameters) -> Architecture:
    """The network of a trial: the kernel of the convolutions that edits put in, and the rate of dropout, are set.

    Raises:
        ArchitectureError: with that kernel it has too many parameters.
    """
    layers = tuple(_set(layer, hyperparameters) for layer in architecture.layers)
    return Architecture(architecture.images, layers)


def _set(layer: AnyLayer, hyperparameters: Hyperparameters) -> AnyLayer:
    if isinstance(layer, Conv) and layer.inserted:
        return structs.replace(layer, kernel=hyperparameters.kernel)
    if isinstance(layer, Dropout):
        return structs.replace(layer, rate=hyperparameters.dropout)
    return layer
