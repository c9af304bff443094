"""Edits of architectures: what they make builds, runs, and computes the same where that is promised."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Iterator
from random import Random

import msgspec
import pytest
import torch
from torch import Tensor, nn

from benchmarks.search.architecture import Architecture, ArchitectureError, Images
from benchmarks.search.layers import (
    IMAGES,
    Add,
    BatchNorm,
    Conv,
    Dense,
    GlobalPool,
    Relu,
)
from benchmarks.search.morphism import (
    Deepen,
    Edit,
    EditError,
    Limits,
    Skip,
    Widen,
    apply,
    keeps_function,
    neighbours,
    width_group,
)
from benchmarks.search.pytorch.network import SearchedNetwork, build
from benchmarks.search.pytorch.weights import inherited
from benchmarks.search.resnet import residual, resnet50, small_resnet

SMALL = small_resnet(Images(8, 8, 1), classes=10, width=4)
STARTS = {
    "small": SMALL,
    "odd": residual(Images(9, 7, 3), classes=3, width=2, blocks=(1, 2, 1)),
    "with a 7 x 7 stem": residual(Images(64, 65, 3), classes=5, width=2, blocks=(1, 1)),
}
EDITS, GENERATION = 500, 6  # edits in all, and edits one upon the other until the next begins at its start


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Threads of several test workers wait for each other longer than such small layers take."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def _trained(architecture: Architecture, seed: int) -> SearchedNetwork:
    """A network in float64 all of whose parameters and statistics are as different as a training makes them."""
    torch.manual_seed(seed)
    network = build(architecture).double().eval()
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            for tensor in (module.weight, module.running_var):
                nn.init.uniform_(tensor, 0.5, 1.5)
            for tensor in (module.bias, module.running_mean):
                nn.init.normal_(tensor)
    return network


def _child(
    network: SearchedNetwork, parent: Architecture, edits: list[Edit], child: Architecture
) -> SearchedNetwork:
    made = SearchedNetwork(child).double().eval()
    made.load_state_dict(
        inherited(network.state_dict(), parent, edits, child)
    )  # strict: every key, every shape
    return made


def _outputs(network: SearchedNetwork, architecture: Architecture) -> Tensor:
    images = architecture.images
    generator = torch.Generator().manual_seed(7)
    shape = (2, images.channels, images.height, images.width)
    with torch.no_grad():
        return network(torch.randn(shape, generator=generator, dtype=torch.float64))


def test_what_no_later_layer_takes_is_let_go() -> None:
    network, outputs, most = build(SMALL).eval(), [], 0

    def count(module: nn.Module, inputs: object, output: Tensor) -> None:
        nonlocal most
        outputs.append(weakref.ref(output))
        most = max(most, sum(each() is not None for each in outputs))

    for module in network.layers.values():
        module.register_forward_hook(count)
    with torch.no_grad():
        network(torch.zeros(1, 1, 8, 8))
    assert most == 3  # what a block began with, what a layer takes, and what it gives
    assert len(outputs) == 28


@pytest.mark.parametrize("start", STARTS)
def test_500_random_edits_build_run_and_keep_the_function(start: str) -> None:
    random = Random(start)
    kinds: Counter[tuple[str, bool]] = Counter()
    for generation in range(EDITS // len(STARTS) // GENERATION + 1):
        parent = STARTS[start]
        network = _trained(parent, generation)
        before = _outputs(network, parent)
        for _ in range(GENERATION):
            edit, child = random.choice(neighbours(parent, random, Limits(parameters=2**16)))
            network = _child(network, parent, [edit], child)
            after = _outputs(network, child)
            is_kept = keeps_function(parent, edit)
            kinds[type(edit).__name__, is_kept] += 1
            assert after.shape == (2, child.classes)
            assert bool(after.isfinite().all())
            same = torch.allclose(after, before, rtol=1e-9, atol=1e-9)
            assert same or not is_kept, (edit, (after - before).abs().max())
            parent, before = child, after
    assert sum(kinds.values()) * len(STARTS) >= EDITS
    assert kinds.keys() == {("Deepen", True), ("Widen", True), ("Skip", True), ("Skip", False)}


def test_a_child_learns_with_all_of_its_weights() -> None:
    """No new weight is dead: after two steps all have moved, and copies of a channel differ from each other."""
    random = Random(3)
    parent, edits = SMALL, []
    for kind in (Deepen, Widen, Skip) * 2:
        edit, child = next(
            each
            for _ in range(99)
            for each in neighbours(parent, random)
            if isinstance(each.edit, kind) and keeps_function(parent, each.edit)
        )
        edits.append(edit)
        parent = child
    network = _child(_trained(SMALL, 0), SMALL, edits, parent).train()
    before = {name: parameter.detach().clone() for name, parameter in network.named_parameters()}
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        images = torch.randn(16, 1, 8, 8, dtype=torch.float64)
        nn.functional.cross_entropy(network(images), torch.arange(16) % 10).backward()
        optimizer.step()
    assert [name for name, each in network.named_parameters() if torch.equal(each, before[name])] == []
    wide = next(edit.layer for edit in edits if isinstance(edit, Widen))
    weight = network.get_parameter(f"layers.{wide}.weight")
    assert not torch.allclose(weight[: len(weight) // 2], weight[len(weight) // 2 :], rtol=0, atol=1e-9)


def test_a_larger_kernel_computes_the_same_and_a_smaller_one_is_its_middle() -> None:
    parent = apply(SMALL, Deepen(3))
    larger = msgspec.structs.replace(
        parent,
        layers=tuple(
            msgspec.structs.replace(each, kernel=7) if isinstance(each, Conv) and each.inserted else each
            for each in parent.layers
        ),
    )
    network = _trained(parent, 1)
    grown = _child(network, parent, [], larger)
    assert torch.allclose(_outputs(grown, larger), _outputs(network, parent), rtol=1e-9, atol=1e-9)
    shrunk = inherited(grown.state_dict(), larger, [], parent)
    assert all(torch.equal(tensor, shrunk[name]) for name, tensor in network.state_dict().items())


def test_weights_of_another_child_are_refused() -> None:
    with pytest.raises(EditError, match="do not make the child"):
        inherited(build(SMALL).state_dict(), SMALL, [], apply(SMALL, Deepen(3)))
    with pytest.raises(EditError, match="do not make the child"):
        inherited(build(SMALL).state_dict(), SMALL, [Deepen(3)], apply(apply(SMALL, Deepen(3)), Widen(1)))


def test_each_edit_by_hand() -> None:
    start = Architecture(
        Images(8, 8, 1),
        (
            Conv(1, (0,), channels=4, kernel=3),
            BatchNorm(2, (1,)),
            Relu(3, (2,)),
            Conv(4, (3,), channels=4, kernel=3, stride=2),
            BatchNorm(5, (4,)),
            Conv(6, (5,), channels=4, kernel=1),
            BatchNorm(7, (6,)),
            Add(8, (7, 5)),
            Relu(9, (8,)),
            GlobalPool(10, (9,)),
            Dense(11, (10,), units=10),
        ),
    )
    deeper = apply(start, Deepen(3))
    assert deeper.layers[3:7] == (
        Conv(12, (3,), channels=4, kernel=3, inserted=True),
        BatchNorm(13, (12,)),
        Relu(14, (13,)),
        Conv(4, (14,), channels=4, kernel=3, stride=2),
    )
    skipped = apply(start, Skip(3, 5))
    assert skipped.layers[5:8] == (
        Conv(12, (3,), channels=4, kernel=1, stride=2),
        BatchNorm(13, (12,)),
        Add(14, (5, 13)),
    )
    assert {layer.id: layer.inputs for layer in skipped.layers if 14 in layer.inputs} == {
        6: (14,),
        8: (7, 14),
    }
    assert apply(deeper, Skip(3, 13)).layers[5] == Add(15, (13, 3))
    assert width_group(start, 4) == {4, 5, 6, 7, 8, 9, 10}
    wider = apply(start, Widen(6))
    assert [layer.channels for layer in wider.layers if isinstance(layer, Conv)] == [4, 8, 8]
    assert width_group(start, 1) == {1, 2, 3}


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (Deepen(1), "layer 1 is no ReLU of maps"),
        (Deepen(999), "layer 999 is no ReLU"),
        (Widen(2), "layer 2 is no convolution"),
        (Widen(999), "layer 999 is no convolution"),
        (Widen(30), "the images, or the classes"),
        (Skip(1, 5), "layer 1 is no ReLU of maps before"),
        (Skip(3, 4), "before a batch normalisation 4"),
        (Skip(9, 5), "layer 9 is no ReLU of maps before a batch normalisation 5"),
        (Skip(999, 5), "layer 999 is no ReLU"),
        (Skip(3, 999), "before a batch normalisation 999"),
    ],
)
def test_an_edit_that_does_not_fit_is_refused(edit: Edit, message: str) -> None:
    with pytest.raises(EditError, match=message):
        apply(SMALL, edit)


def test_no_skip_goes_over_a_stride_that_no_layer_may_have() -> None:
    images = Images(512, 512, 1)
    start = (Relu(1, (0,)), Conv(2, (1,), 4, kernel=1, stride=64), Conv(3, (2,), 4, kernel=1, stride=2))
    end = (BatchNorm(4, (3,)), GlobalPool(5, (4,)), Dense(6, (5,), units=3))
    with pytest.raises(EditError, match="no stride makes maps of the size of layer 4"):
        apply(Architecture(images, (*start, *end)), Skip(1, 4))


def test_what_is_added_to_the_images_cannot_be_widened() -> None:
    network = Architecture(
        Images(8, 8, 3),
        (
            Conv(1, (IMAGES,), channels=3, kernel=3),
            Add(2, (1, IMAGES)),
            GlobalPool(3, (2,)),
            Dense(4, (3,), units=3),
        ),
    )
    with pytest.raises(EditError, match="the images, or the classes"):
        apply(network, Widen(1))
    assert neighbours(network, Random(0)) == []


def test_limits_hold() -> None:
    random = Random(1)
    few = Limits(parameters=SMALL.parameters, deepen_below=len(SMALL.layers))
    for _ in range(20):
        for edit, edited in neighbours(SMALL, random, few):
            assert edited.parameters <= SMALL.parameters
            assert not isinstance(edit, Deepen)
    for seed in range(20):
        for edit, edited in neighbours(SMALL, Random(seed), Limits(layers=len(SMALL.layers) + 1)):
            assert len(edited.layers) == len(SMALL.layers) + (isinstance(edit, Skip))
    wide = residual(Images(8, 8, 1), classes=10, width=2**14, blocks=())
    with pytest.raises(ArchitectureError, match="131072 channels, 65536 at most"):
        apply(apply(apply(wide, Widen(1)), Widen(1)), Widen(1))


def test_edits_are_drawn_evenly_and_by_the_seed() -> None:
    start = resnet50(Images(32, 32, 3), classes=10, width=4)
    drawn = [each.edit for seed in range(60) for each in neighbours(start, Random(seed))]
    assert len(drawn) == 60 * 8
    kinds = Counter(type(edit).__name__ for edit in drawn)
    assert min(kinds.values()) > 110, kinds  # 160 each; 4.6 standard deviations
    last = [layer.id for layer in start.layers if isinstance(layer, (Conv, Dense))][-2:]
    assert not [edit for edit in drawn if isinstance(edit, Widen) and edit.layer in last]
    assert len({edit.after for edit in drawn if isinstance(edit, Deepen)}) > 35  # of 49 ReLUs
    assert [each.edit for each in neighbours(start, Random(5))] == [
        each.edit for each in neighbours(start, Random(5))
    ]


def test_edits_travel_as_json() -> None:
    for edit in (Deepen(3), Widen(1), Skip(3, 5)):
        assert msgspec.json.decode(msgspec.json.encode(edit), type=Edit) == edit
    assert [str(each) for each in (Deepen(3), Widen(1), Skip(3, 5))] == [
        "deepen after layer 3",
        "widen layer 1",
        "skip from layer 3 to layer 5",
    ]
