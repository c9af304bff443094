"""What is searched among, and what a trial's hyper-parameters make of a network: that is built, trained and counted."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, structs

from benchmarks.search.architecture import MOST_PARAMETERS, Architecture
from benchmarks.search.layers import AnyLayer, Conv, Dropout
from benchmarks.search.morphism import DEEPEN_BELOW, Limits
from benchmarks.search.protocol import Hyperparameters


class Space(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is searched: networks that edits make of `start`, and batch sizes, of which the first is the start's."""

    start: Architecture
    batch_sizes: Annotated[tuple[Annotated[int, Meta(ge=1, le=2**31 - 1)], ...], Meta(min_length=1)]
    most_parameters: int = MOST_PARAMETERS
    deepen_below: int = DEEPEN_BELOW

    @property
    def limits(self) -> Limits:
        return Limits(self.most_parameters, self.deepen_below)


def trained(architecture: Architecture, hyperparameters: Hyperparameters) -> Architecture:
    """The network of a trial: the kernel of the convolutions that edits put in, and the rate of dropout, are set.

    Raises:
        ArchitectureError: with that kernel it has too many parameters.
    """
    layers = tuple(_set(layer, hyperparameters) for layer in architecture.layers)
    return Architecture(architecture.images, layers)


def as_proposed(architecture: Architecture) -> Architecture:
    """The same of all networks that a trial's hyper-parameters make of one."""
    return trained(architecture, Hyperparameters(dropout=0.0, kernel=3, batch_size=1))


def _set(layer: AnyLayer, hyperparameters: Hyperparameters) -> AnyLayer:
    if isinstance(layer, Conv) and layer.inserted:
        return structs.replace(layer, kernel=hyperparameters.kernel)
    if isinstance(layer, Dropout):
        return structs.replace(layer, rate=hyperparameters.dropout)
    return layer
