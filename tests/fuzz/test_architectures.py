"""Networks as a worker may send them: whatever is taken for one can be built, run, counted, compared and edited."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import msgspec
import torch
from hypothesis import strategies as st

from benchmarks.search.architecture import Architecture, ArchitectureError, Images, as_json, parse
from benchmarks.search.distance import distance
from benchmarks.search.hyperparameters import trained
from benchmarks.search.morphism import Edit, apply, neighbours
from benchmarks.search.operations import operations_of
from benchmarks.search.protocol import Hyperparameters
from benchmarks.search.pytorch.network import SearchedNetwork
from benchmarks.search.resnet import small_resnet
from tests.fuzz.long_run import holds
from tests.fuzz.test_results import VALUES, torn

START = small_resnet(Images(8, 8, 1), classes=10, width=2)
TEXT = as_json(START).decode()
KINDS = ("conv", "batch_norm", "relu", "add", "max_pool", "global_pool", "dropout", "dense")
FIELDS = {
    "conv": ("channels", "kernel", "stride", "inserted"),
    "max_pool": ("kernel", "stride"),
    "dropout": ("rate",),
    "dense": ("units",),
}
SMALL = st.sampled_from([0, 1, 2, 3, 5, 7, 64, 65536, -1, 2**31, 0.5, None, True, "ⅷ"])
IDS = st.integers(0, 12)


@st.composite
def graphs(draw: st.DrawFn) -> str:
    """Layers of any kind, mostly with the right fields, that mostly take the one before."""
    layers: list[dict[str, Any]] = []
    for number in range(1, draw(st.integers(1, 10)) + 1):
        kind = draw(st.sampled_from(KINDS))
        inputs = [number - 1] if draw(st.integers(0, 9)) else [draw(IDS)]
        layer = {"kind": kind, "id": number if draw(st.integers(0, 19)) else draw(IDS), "inputs": inputs}
        if kind == "add":
            layer["inputs"] = [*inputs, draw(IDS)]
        layers.append(
            layer | {field: draw(st.sampled_from([1, 3]) | SMALL) for field in FIELDS.get(kind, ())}
        )
    layers.append({"kind": "global_pool", "id": 11, "inputs": [len(layers)]})
    layers.append({"kind": "dense", "id": 12, "inputs": [11], "units": 3})
    images = {"height": draw(st.integers(1, 9)), "width": draw(st.integers(1, 9)), "channels": 1}
    return json.dumps({"images": images, "layers": layers})


@st.composite
def changed(draw: st.DrawFn) -> str:
    """A network with one value that is another."""
    content = json.loads(TEXT)
    layer = draw(st.sampled_from(content["layers"]))
    layer[draw(st.sampled_from([*layer, "kind", "id", "inputs"]))] = draw(
        SMALL | VALUES | st.lists(IDS, max_size=3)
    )
    return json.dumps(content)


@holds(text=graphs() | changed() | torn(st.just(TEXT)))
def test_what_is_taken_for_a_network_is_one(text: str) -> None:
    try:
        network = parse(text)
    except ArchitectureError as error:
        assert error.message.isprintable()
        return
    assert parse(as_json(network)) == network
    operations = operations_of(network)
    assert operations.forward > 0 and operations.backward > 0
    assert distance(network, network) == 0
    _builds(network)
    for edit, edited in neighbours(network, Random(0)):
        assert apply(network, edit) == edited == parse(as_json(edited))
        assert edited.parameters > network.parameters or type(edit).__name__ == "Skip"
    larger = trained(network, Hyperparameters(dropout=0.1, kernel=7, batch_size=1))
    assert larger.shapes == network.shapes


def _builds(network: Architecture) -> None:
    """PyTorch makes it with so many parameters, and it gives what its shapes say; on a device that computes nothing."""
    images = network.images
    with torch.device("meta"):
        module = SearchedNetwork(network)
        output = module(torch.empty(2, images.channels, images.height, images.width))
    assert output.shape == (2, network.classes)
    assert sum(parameter.numel() for parameter in module.parameters()) == network.parameters


@st.composite
def edits(draw: st.DrawFn) -> bytes:
    """Any that a stranger may send."""
    names = draw(st.sampled_from([("deepen", "after"), ("widen", "layer"), ("skip", "source", "target")]))
    place = st.sampled_from([layer.id for layer in START.layers]) | SMALL
    return json.dumps({"kind": names[0]} | {name: draw(place) for name in names[1:]}).encode()


@holds(text=edits())
def test_an_edit_fits_or_is_refused(text: bytes) -> None:
    try:
        edited = apply(START, msgspec.json.decode(text, type=Edit))
    except (ArchitectureError, msgspec.ValidationError):
        return
    _builds(edited)
    assert distance(START, edited) > 1e-5
