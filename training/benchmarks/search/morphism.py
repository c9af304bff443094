"""Network morphism: edits that make a larger network of a trained one, which computes the same at first where it can.

Wei et al. 2016 (arXiv:1603.01670), Chen et al. 2016 (arXiv:1511.05641); the edits are AIPerf's (arXiv:2008.07141). The
weights of what an edit makes: `benchmarks.search.pytorch.weights`.
"""

from __future__ import annotations

from collections.abc import Set
from random import Random
from typing import NamedTuple

import msgspec
from msgspec import structs

from benchmarks.search.architecture import MOST_PARAMETERS, Architecture, ArchitectureError
from benchmarks.search.layers import (
    IMAGES,
    MOST_STRIDE,
    Add,
    AnyLayer,
    BatchNorm,
    Conv,
    Dense,
    LayerId,
    Relu,
    Shape,
)

NEIGHBOURS, TRIES = 8, 16
DEEPEN_BELOW = 300  # layers
PAIRS_DRAWN = 64  # until one fits


class EditError(ArchitectureError):
    """An edit does not fit an architecture."""


class Limits(NamedTuple):
    """How far networks may grow.

    parameters: that one has at most. deepen_below: layers from which on none is deepened. layers: that one has at most,
    skips included, so that comparing hundreds of networks takes seconds.
    """

    parameters: int = MOST_PARAMETERS
    deepen_below: int = DEEPEN_BELOW
    layers: int = 2 * DEEPEN_BELOW


class Deepen(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="deepen"):
    """A 3 x 3 convolution, batch normalisation and ReLU of the same width behind a ReLU."""

    after: LayerId

    def __str__(self) -> str:
        return f"deepen after layer {self.after}"


class Widen(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="widen"):
    """Twice the channels of a convolution or units of a dense layer, and of all that is added to what it gives."""

    layer: LayerId

    def __str__(self) -> str:
        return f"widen layer {self.layer}"


class Skip(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="skip"):
    """A ReLU is added to a later batch normalisation; where shapes differ, by a 1 x 1 convolution and normalisation."""

    source: LayerId
    target: LayerId

    def __str__(self) -> str:
        return f"skip from layer {self.source} to layer {self.target}"


Edit = Deepen | Widen | Skip


class Neighbour(NamedTuple):
    """An architecture, and the edit that makes it."""

    edit: Edit
    architecture: Architecture


def neighbours(architecture: Architecture, random: Random, limits: Limits = Limits()) -> list[Neighbour]:  # noqa: B008
    """Up to 8 architectures of 16 tries: each an edit of a kind drawn evenly, at a place drawn evenly."""
    made: list[Neighbour] = []
    for _ in range(TRIES):
        edit = random.choice((_deepen, _widen, _skip))(architecture, random, limits)
        neighbour = _tried(architecture, edit, limits) if edit else None
        if neighbour:
            made.append(neighbour)
        if len(made) == NEIGHBOURS:
            break
    return made


def apply(architecture: Architecture, edit: Edit) -> Architecture:
    """The architecture that an edit makes. Layers keep their ids, new ones get the next above the largest.

    Raises:
        EditError: the edit does not fit.
        ArchitectureError: what it makes is too large.
    """
    match edit:
        case Deepen(after=after):
            return _behind(architecture, after, _deepening(architecture, after))
        case Skip(source=source, target=target):
            return _behind(architecture, target, _skipping(architecture, source, target))
        case Widen(layer=layer):
            return _widened(architecture, layer)


def width_group(architecture: Architecture, layer: int) -> Set[int]:
    """The layers, IMAGES among them, that have as many channels as `layer` because they are added or passed on."""
    beside: dict[int, set[int]] = {each: set() for each in architecture.shapes}
    for each in architecture.layers:
        for source in () if isinstance(each, (Conv, Dense)) else each.inputs:
            beside[each.id].add(source)
            beside[source].add(each.id)
    group, waiting = {layer}, [layer]
    while waiting:
        further = beside[waiting.pop()] - group
        group |= further
        waiting += further
    return group


def keeps_function(architecture: Architecture, edit: Edit) -> bool:
    """Whether what the edit makes can compute the same, once its batch normalisations have fixed statistics.

    A skip of equal shapes adds what it takes, unchanged: there is no weight that could be zero.
    """
    return not (isinstance(edit, Skip) and len(_skipping(architecture, edit.source, edit.target)) == 1)


def _tried(architecture: Architecture, edit: Edit, limits: Limits) -> Neighbour | None:
    try:
        edited = apply(architecture, edit)
    except ArchitectureError:
        return None
    fits = edited.parameters <= limits.parameters and len(edited.layers) <= limits.layers
    return Neighbour(edit, edited) if fits else None


def _deepen(architecture: Architecture, random: Random, limits: Limits) -> Edit | None:
    places = [layer.id for layer in architecture.main_chain if _is_relu_of_maps(architecture, layer)]
    return (
        Deepen(random.choice(places)) if places and len(architecture.layers) < limits.deepen_below else None
    )


def _widen(architecture: Architecture, random: Random, limits: Limits) -> Edit | None:
    convolutions = [layer.id for layer in architecture.layers if isinstance(layer, Conv)]
    dense = [layer.id for layer in architecture.layers if isinstance(layer, Dense)]
    places = convolutions[:-1] + dense[:-1]
    return Widen(random.choice(places)) if places else None


def _skip(architecture: Architecture, random: Random, limits: Limits) -> Edit | None:
    """Of the pairs that fit each is drawn as often as any other."""
    chain = [layer.id for layer in architecture.main_chain]
    places = {layer: place for place, layer in enumerate(chain)}
    sources = [each for each in chain if _is_relu_of_maps(architecture, architecture.by_id[each])]
    targets = [each for each in chain if isinstance(architecture.by_id[each], BatchNorm)]
    for _ in range(PAIRS_DRAWN if sources and targets else 0):
        source, target = random.choice(sources), random.choice(targets)
        if places[source] < places[target] and _stride(architecture, source, target):
            return Skip(source, target)
    return None


def _is_relu_of_maps(architecture: Architecture, layer: AnyLayer | None) -> bool:
    return isinstance(layer, Relu) and not architecture.shapes[layer.id].flat


def _stride(architecture: Architecture, source: int, target: int) -> int:
    """With which a 1 x 1 convolution makes maps of `target`'s size of those of `source`; 0: there is none."""
    taken, given = architecture.shapes[source], architecture.shapes[target]
    stride = -(-taken.height // given.height)
    fits = all((side - 1) // stride + 1 == wanted for side, wanted in zip(taken[:2], given[:2], strict=True))
    return stride if fits and stride <= MOST_STRIDE else 0


def _deepening(architecture: Architecture, after: int) -> tuple[AnyLayer, ...]:
    if not _is_relu_of_maps(architecture, architecture.by_id.get(after)):
        raise EditError(f"deepen: layer {after} is no ReLU of maps")
    new = _next_id(architecture)
    channels = architecture.shapes[after].channels
    convolution = Conv(new, (after,), channels=channels, kernel=3, inserted=True)
    return convolution, BatchNorm(new + 1, (new,)), Relu(new + 2, (new + 1,))


def _skipping(architecture: Architecture, source: int, target: int) -> tuple[AnyLayer, ...]:
    order = list(architecture.by_id)
    fits = _is_relu_of_maps(architecture, architecture.by_id.get(source)) and isinstance(
        architecture.by_id.get(target), BatchNorm
    )
    if not fits or order.index(source) > order.index(target):
        raise EditError(f"skip: layer {source} is no ReLU of maps before a batch normalisation {target}")
    stride = _stride(architecture, source, target)
    if not stride:
        raise EditError(
            f"skip: no stride makes maps of the size of layer {target} of those of layer {source}"
        )
    new = _next_id(architecture)
    wanted: Shape = architecture.shapes[target]
    if architecture.shapes[source] == wanted:
        return (Add(new, (target, source)),)
    convolution = Conv(new, (source,), channels=wanted.channels, kernel=1, stride=stride)
    return convolution, BatchNorm(new + 1, (new,)), Add(new + 2, (target, new + 1))


def _behind(architecture: Architecture, place: int, added: tuple[AnyLayer, ...]) -> Architecture:
    """What took the layer `place` takes the last of the added ones."""
    layers: list[AnyLayer] = []
    for layer in architecture.layers:
        inputs = tuple(added[-1].id if source == place else source for source in layer.inputs)
        layers.append(layer if inputs == layer.inputs else structs.replace(layer, inputs=inputs))
        if layer.id == place:
            layers.extend(added)
    return Architecture(architecture.images, tuple(layers))


def _widened(architecture: Architecture, wide: int) -> Architecture:
    if not isinstance(architecture.by_id.get(wide), (Conv, Dense)):
        raise EditError(f"widen: layer {wide} is no convolution, and no dense layer")
    group = width_group(architecture, wide)
    if IMAGES in group or architecture.layers[-1].id in group:
        raise EditError(f"widen: layer {wide} has as many channels as the images, or the classes")
    layers = (_doubled(layer) if layer.id in group else layer for layer in architecture.layers)
    return Architecture(architecture.images, tuple(layers))


def _doubled(layer: AnyLayer) -> AnyLayer:
    match layer:
        case Conv(channels=channels):
            return structs.replace(layer, channels=2 * channels)
        case Dense(units=units):
            return structs.replace(layer, units=2 * units)
        case _:
            return layer


def _next_id(architecture: Architecture) -> int:
    return max(architecture.by_id) + 1
