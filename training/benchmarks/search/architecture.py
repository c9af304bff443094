"""A network as data: a graph of layers, checked when it is made. What cannot be built or trained cannot exist."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated

import msgspec
from msgspec import Meta

from benchmarks.search.layers import IMAGES, LARGEST_ID, MOST_CHANNELS, AnyLayer, Channels, Dense, Shape
from utils.errors import FlagPerfError
from utils.text_files import one_line, shortened

MOST_LAYERS = 2_000
MOST_PARAMETERS = 2**30
LONGEST_TEXT = 2**20  # bytes of JSON: 2,000 layers need a fifth of it

Side = Annotated[int, Meta(ge=1, le=4096)]


class ArchitectureError(FlagPerfError, ValueError):
    """A text is no architecture, or no network can be built of its layers."""


class Images(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the network takes: pixels and channels of one image."""

    height: Side
    width: Side
    channels: Channels


class Architecture(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """Layers in an order in which they can be computed; the last one, a dense layer, has an output a class.

    Raises:
        ArchitectureError: no network is that. While JSON is decoded it becomes msgspec's ValidationError.
    """

    images: Images
    layers: Annotated[tuple[AnyLayer, ...], Meta(min_length=1, max_length=MOST_LAYERS)]

    def __post_init__(self) -> None:
        if not 1 <= len(self.layers) <= MOST_LAYERS:
            raise _wrong(f"it has {len(self.layers)} layers; 1 to {MOST_LAYERS} are possible")
        if self.parameters > MOST_PARAMETERS:
            raise _wrong(f"it has {self.parameters} parameters, {MOST_PARAMETERS} at most")
        if not isinstance(self.layers[-1], Dense):
            raise _wrong("its last layer is not dense: there is no output a class")
        taken = {source for layer in self.layers for source in layer.inputs}
        unused = [layer.id for layer in self.layers[:-1] if layer.id not in taken]
        if unused:
            raise _wrong(f"no layer takes layer {unused[0]}, and it is not the last")

    @cached_property
    def shapes(self) -> Mapping[int, Shape]:
        """What each layer gives, by its id, and the images by IMAGES."""
        images = self.images
        shapes = {IMAGES: Shape(images.height, images.width, images.channels)}
        for layer in self.layers:
            shapes[layer.id] = _output(layer, shapes)
        return shapes

    @cached_property
    def parameters(self) -> int:
        """How many it learns."""
        return sum(layer.parameters(self.inputs_of(layer)) for layer in self.layers)

    def inputs_of(self, layer: AnyLayer) -> list[Shape]:
        """What a layer takes."""
        return [self.shapes[source] for source in layer.inputs]

    @cached_property
    def by_id(self) -> Mapping[int, AnyLayer]:
        """Its layers."""
        return {layer.id: layer for layer in self.layers}

    @cached_property
    def longest_inputs(self) -> Mapping[int, int]:
        """Of what each layer takes that with the longest path from the images to it; the first of equally long ones."""
        depth = {IMAGES: 0}
        longest = {}
        for layer in self.layers:
            longest[layer.id] = max(layer.inputs, key=depth.__getitem__)
            depth[layer.id] = depth[longest[layer.id]] + 1
        return longest

    @cached_property
    def main_chain(self) -> tuple[AnyLayer, ...]:
        """The longest path from the images to the last layer."""
        chain = [self.layers[-1].id]
        while self.longest_inputs[chain[-1]] != IMAGES:
            chain.append(self.longest_inputs[chain[-1]])
        return tuple(self.by_id[each] for each in reversed(chain))

    @property
    def classes(self) -> int:
        """Outputs of the last layer."""
        return self.shapes[self.layers[-1].id].channels


def parse(text: bytes | str) -> Architecture:
    """The architecture that a JSON text is.

    Raises:
        ArchitectureError: it is none; the message says where.
    """
    if len(text) > LONGEST_TEXT:
        raise _wrong(f"the text has {len(text)} characters, {LONGEST_TEXT} at most")
    try:
        return msgspec.json.decode(text, type=Architecture)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        if isinstance(error.__cause__, ArchitectureError):  # it is JSON of the form, but no network
            raise error.__cause__ from None
        raise _wrong(shortened(one_line(str(error)), 300)) from None


def as_json(architecture: Architecture) -> bytes:
    """The text that `parse` reads."""
    return msgspec.json.encode(architecture)


def _output(layer: AnyLayer, shapes: Mapping[int, Shape]) -> Shape:
    if layer.id in shapes or layer.id > LARGEST_ID:
        raise _wrong(f"{_name(layer)}: the id stands twice, or is above {LARGEST_ID}")
    missing = [source for source in layer.inputs if source not in shapes]
    if missing:
        raise _wrong(f"{_name(layer)}: takes layer {missing[0]}, which does not come before it")
    try:
        output = layer.output([shapes[source] for source in layer.inputs])
    except ValueError as error:
        raise _wrong(f"{_name(layer)}: {error}") from None
    if output.channels > MOST_CHANNELS:
        raise _wrong(f"{_name(layer)}: gives {output.channels} channels, {MOST_CHANNELS} at most")
    return output


def _name(layer: AnyLayer) -> str:
    return f"layer {layer.id} ({layer.kind})"


def _wrong(message: str) -> ArchitectureError:
    remedy = "send a graph of layers as benchmarks/search/layers.py describes them, each after what it takes"
    return ArchitectureError(f"no architecture: {message}", remedy=remedy)
