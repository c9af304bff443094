"""Operations counted by hand, as published, and beside PyTorch's own counter, whose difference is explained."""

from __future__ import annotations

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.search.architecture import Architecture, Images
from benchmarks.search.layers import (
    Add,
    BatchNorm,
    Conv,
    Dense,
    Dropout,
    GlobalPool,
    MaxPool,
    Relu,
)
from benchmarks.search.operations import layer_operations, operations_of
from benchmarks.search.pytorch.network import build
from benchmarks.search.resnet import resnet50

RESNET50 = resnet50(Images(224, 224, 3), classes=1000)


def test_resnet50_counts_as_published() -> None:
    operations = operations_of(RESNET50)
    assert operations.forward == 7_806_583_495
    assert operations.training == 23_053_458_315


def test_every_layer_by_hand() -> None:
    network = Architecture(
        Images(7, 5, 3),
        (
            Conv(1, (0,), channels=4, kernel=5, stride=2),  # 4 x 3 pixels
            BatchNorm(2, (1,)),
            Relu(3, (2,)),
            Conv(4, (3,), channels=4, kernel=3),
            Add(5, (4, 3)),
            MaxPool(6, (5,), kernel=3, stride=2),  # 2 x 2 pixels
            GlobalPool(7, (6,)),
            Dropout(8, (7,)),
            Dense(9, (8,), units=10),
        ),
    )
    forward = [
        2 * 12 * 25 * 3 * 4,
        7 * 12 * 4,
        12 * 4,
        2 * 12 * 9 * 4 * 4,
        12 * 4,
        12 * 4 * 9 // 4,
        3 * 4 + 4 * 4,
        0,
        2 * 4 * 10,
    ]
    backward = [
        25 * 3 * 4 * (2 * 12 + 2),
        36,
        0,
        9 * 4 * 4 * (4 * 12 + 2),
        0,
        0,
        0,
        0,
        4 * 4 * 10 + 2 * 5 * 10,
    ]
    counts = [
        layer_operations(layer, network.inputs_of(layer)[0], network.shapes[layer.id])
        for layer in network.layers
    ]
    assert [count.forward for count in counts] == forward
    assert [count.backward for count in counts] == backward
    softmax = 8 * 10 + 9 + 4 * 10
    assert operations_of(network) == (sum(forward) + softmax, sum(backward))


@pytest.fixture(scope="module")
def counted() -> int:
    """Forward and backward of one image by PyTorch, which computes nothing for it on this device."""
    with torch.device("meta"):
        network = build(RESNET50)
        images, labels = torch.empty(1, 3, 224, 224), torch.empty(1, dtype=torch.long)
    with FlopCounterMode(display=False) as counter:
        torch.nn.functional.cross_entropy(network(images), labels).backward()
    return int(counter.get_total_flops())


def test_pytorch_counts_less_by_what_can_be_named(counted: int) -> None:
    """It counts products of matrices and convolutions alone: 2 a multiply-add, once forward and twice backward."""
    assert counted == 22_911_811_584
    kinds: dict[str, int] = {}
    learned: dict[str, int] = {}
    for layer in RESNET50.layers:
        inputs = RESNET50.inputs_of(layer)
        count = layer_operations(layer, inputs[0], RESNET50.shapes[layer.id])
        kinds[layer.kind] = kinds.get(layer.kind, 0) + count.training
        learned[layer.kind] = learned.get(layer.kind, 0) + layer.parameters(inputs)
    updates = 2 * (learned["conv"] + learned["dense"])
    others = sum(kinds[kind] for kind in ("batch_norm", "relu", "add", "max_pool", "global_pool"))
    softmax = 8 * 1000 + 999 + 4 * 1000
    assert (updates, others, softmax) == (51_007_824, 90_625_908, 12_999)
    assert operations_of(RESNET50).training - counted == updates + others + softmax
