"""Architectures as data: what can be built is read back, everything else is refused, and says where."""

from __future__ import annotations

import json
import pickle
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from benchmarks.search.architecture import Architecture, ArchitectureError, Images, as_json, parse
from benchmarks.search.layers import Conv, Shape
from benchmarks.search.resnet import resnet50, small_resnet

SMALL = small_resnet(Images(8, 8, 1), classes=10)


def test_resnet50_has_the_parameters_of_the_paper() -> None:
    network = resnet50(Images(224, 224, 3), classes=1000)
    assert network.parameters == 25_557_032  # as torchvision's
    convolutions = [layer for layer in network.layers if isinstance(layer, Conv)]
    assert len(convolutions) == 53
    assert network.shapes[network.layers[-4].id] == Shape(7, 7, 2048)
    assert network.classes == 1000


@pytest.mark.parametrize(("side", "last"), [(224, 7), (64, 2), (63, 8), (32, 4), (8, 1), (1, 1)])
def test_resnet50_takes_images_of_any_size(side: int, last: int) -> None:
    network = resnet50(Images(side, side, 3), classes=10, width=4)
    assert network.shapes[network.layers[-4].id] == Shape(last, last, 4 * 8 * 4)


def test_what_is_written_is_read_back() -> None:
    again = parse(as_json(SMALL))
    assert again == SMALL
    assert hash(again) == hash(SMALL)
    assert pickle.loads(pickle.dumps(SMALL)) == SMALL  # noqa: S301 - between processes of one's own
    assert (again.shapes, again.parameters) == (SMALL.shapes, SMALL.parameters)


def test_the_main_chain_is_the_longest_path() -> None:
    chain = SMALL.main_chain
    assert [layer.kind for layer in chain[:4]] == ["conv", "batch_norm", "relu", "conv"]
    for before, after in pairwise(chain):
        assert before.id in after.inputs
    assert chain[-1] == SMALL.layers[-1]
    shortcuts = {"conv": 2, "batch_norm": 2}  # of two blocks, each projected
    for kind, count in shortcuts.items():
        assert sum(layer.kind == kind for layer in SMALL.layers) - count == sum(
            layer.kind == kind for layer in chain
        )


def _graph(*layers: dict[str, Any], side: Any = 8) -> str:
    return json.dumps({"images": {"height": side, "width": 8, "channels": 1}, "layers": layers})


CONV = {"kind": "conv", "id": 1, "inputs": [0], "channels": 4, "kernel": 3}
POOL = {"kind": "global_pool", "id": 2, "inputs": [1]}
DENSE = {"kind": "dense", "id": 3, "inputs": [2], "units": 10}
RELU = {"kind": "relu", "id": 4, "inputs": [1]}


def test_a_graph_by_hand() -> None:
    network = parse(_graph(CONV, POOL, DENSE))
    assert network.parameters == 9 * 4 + (4 + 1) * 10
    assert network.shapes == {
        0: (8, 8, 1, False),
        1: (8, 8, 4, False),
        2: (1, 1, 4, True),
        3: (1, 1, 10, True),
    }


BAD = {
    "not JSON": ("{", "truncated"),
    "not an object": ("[]", "Expected `object`"),
    "nothing": ("{}", "missing required field `images`"),
    "not UTF-8": (b'{"\xff": 1}', "UTF-8"),
    "nested without end": ('{"images":' * 200_000, "characters"),
    "nested deeply": ('{"images":' * 50_000, "unknown field"),
    "nested deeply in a list": ("[" * 50_000, "Expected `object`"),
    "a field of a million characters": ('{"' + "x" * 10**6 + '": 1}', "unknown field `xxx"),
    "a field that clears the screen": ('{"\\u001b[2J": 1}', "unknown field `\N{REPLACEMENT CHARACTER}[2J`"),
    "a longer text": (_graph(CONV, POOL, DENSE) + " " * 2**20, "1048576 at most"),
    "a further field": (_graph(CONV | {"pickle": "x"}, POOL, DENSE), "unknown field `pickle`"),
    "an unknown layer": (_graph(CONV | {"kind": "shell"}, POOL, DENSE), "Invalid value 'shell'"),
    "no layer": (_graph(), "length >= 1"),
    "a name for an id": (_graph(CONV | {"id": "ⅷ"}, POOL, DENSE), "Expected `int`, got `str`"),
    "an id beyond integers": (_graph(CONV | {"id": 10**40}, POOL, DENSE), "$.layers[0].id"),
    "the images' id": (_graph(CONV | {"id": 0}, POOL, DENSE), "Expected `int` >= 1"),
    "an id twice": (_graph(CONV, POOL | {"id": 1}, DENSE | {"inputs": [1]}), "(global_pool): the id stands twice"),
    "a cycle": (_graph(CONV | {"inputs": [2]}, POOL, DENSE), "takes layer 2, which does not come before it"),
    "itself": (_graph(CONV | {"inputs": [1]}, POOL, DENSE), "takes layer 1, which does not come before it"),
    "a layer that is not there": (_graph(CONV, POOL | {"inputs": [7]}, DENSE), "takes layer 7"),
    "two inputs for one": (_graph(CONV | {"inputs": [0, 0]}, POOL, DENSE), "length 1"),
    "one input for two": (_graph(CONV, POOL, RELU | {"kind": "add"}, DENSE), "length 2"),
    "a billion channels": (_graph(CONV | {"channels": 10**9}, POOL, DENSE), "Expected `int` <= 65536"),
    "channels that are no number": (_graph(CONV, POOL, DENSE).replace('4,', 'NaN,'), "malformed"),
    "no channels": (_graph(CONV | {"channels": 0}, POOL, DENSE), ">= 1"),
    "an even kernel": (_graph(CONV | {"kernel": 4}, POOL, DENSE), "Invalid enum value 4"),
    "no stride": (_graph(CONV | {"stride": 0}, POOL, DENSE), ">= 1"),
    "images without end": (_graph(CONV, POOL, DENSE, side=10**9), "Expected `int` <= 4096"),
    "a layer that nobody takes": (_graph(CONV, RELU, POOL, DENSE), "no layer takes layer 4"),
    "no classes": (_graph(CONV, POOL), "its last layer is not dense"),
    "maps for a dense layer": (_graph(CONV, DENSE | {"inputs": [1]}), "layer 3 (dense): takes a vector, not 8 x 8 x 4"),
    "a vector for a convolution": (
        _graph(CONV, POOL, CONV | {"id": 4, "inputs": [2]}, DENSE | {"inputs": [4]}),
        "layer 4 (conv): takes maps, not a vector of 4",
    ),
    "a sum of two shapes": (
        _graph(CONV, RELU | {"kind": "add", "inputs": [0, 1]}, POOL | {"inputs": [4]}, DENSE),
        "layer 4 (add): adds 8 x 8 x 1 and 8 x 8 x 4",
    ),
    "too many parameters": (
        _graph(
            CONV | {"channels": 65536},
            CONV | {"id": 4, "inputs": [1], "channels": 65536},
            POOL | {"inputs": [4]},
            DENSE,
        ),
        "parameters, 1073741824 at most",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_built_is_refused(name: str) -> None:
    text, message = BAD[name]
    with pytest.raises(ArchitectureError) as caught:
        parse(text)
    if name == "not UTF-8":  # msgspec has written it in small letters, too
        message = message if message in caught.value.message else message.lower()
    assert message in caught.value.message
    assert "\n" not in caught.value.message
    assert len(caught.value.message) < 400
    assert str(caught.value).count("no architecture") == 1


def test_too_many_layers_are_refused() -> None:
    def chain(length: int) -> str:
        relus = [
            {"kind": "relu", "id": 10 + each, "inputs": [1 if not each else 9 + each]}
            for each in range(length)
        ]
        return _graph(CONV, *relus, POOL | {"inputs": [9 + length]}, DENSE)

    assert len(parse(chain(1997)).main_chain) == 2000
    with pytest.raises(ArchitectureError, match="length <= 2000"):
        parse(chain(1998))


def test_what_is_made_by_code_is_checked_too() -> None:
    with pytest.raises(ArchitectureError, match="65536 at most"):
        resnet50(Images(224, 224, 3), classes=1000, width=2**15)
    with pytest.raises(ArchitectureError, match="it has 0 layers"):
        Architecture(Images(8, 8, 1), ())


def test_within_a_message_it_is_an_error_of_the_message() -> None:
    class Message(msgspec.Struct):
        architecture: Architecture

    with pytest.raises(msgspec.ValidationError, match=r"no layer takes layer 4.*\n.*\$\.architecture"):
        msgspec.json.decode(f'{{"architecture": {_graph(CONV, RELU, POOL, DENSE)}}}', type=Message)
