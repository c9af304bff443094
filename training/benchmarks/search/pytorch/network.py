"""A searched network on PyTorch."""

from __future__ import annotations

from torch import Tensor, nn

from benchmarks.search.architecture import Architecture
from benchmarks.search.layers import (
    IMAGES,
    Add,
    AnyLayer,
    BatchNorm,
    Conv,
    Dense,
    Dropout,
    GlobalPool,
    MaxPool,
    Relu,
    Shape,
)


class SearchedNetwork(nn.Module):
    """(B, channels, height, width) float -> (B, classes) logits. The state's keys are `layers.<id>.<name>`."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.steps = [(str(layer.id), layer.inputs, isinstance(layer, Add)) for layer in architecture.layers]
        self.layers = nn.ModuleDict(
            {
                str(layer.id): _module(layer, architecture.inputs_of(layer)[0])
                for layer in architecture.layers
                if not isinstance(layer, Add)
            }
        )
        self.freed = _last_takers(architecture)

    def forward(self, images: Tensor) -> Tensor:
        """The logits; what no later layer takes is let go at once."""
        given, output = {IMAGES: images}, images
        for (name, sources, is_sum), freed in zip(self.steps, self.freed, strict=True):
            taken = [given[source] for source in sources]
            output = taken[0] + taken[1] if is_sum else self.layers[name](taken[0])
            given[int(name)] = output
            for source in freed:
                del given[source]
        return output


def build(architecture: Architecture) -> SearchedNetwork:
    """The network, with fresh weights: convolutions as He et al. (arXiv:1502.01852) draw them, by what they give."""
    network = SearchedNetwork(architecture)
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    return network


def _last_takers(architecture: Architecture) -> list[set[int]]:
    """By layer, in order: whose outputs no layer takes after it."""
    last = {source: place for place, layer in enumerate(architecture.layers) for source in layer.inputs}
    freed: list[set[int]] = [set() for _ in architecture.layers]
    for source, place in last.items():
        freed[place].add(source)
    return freed


def _module(layer: AnyLayer, taken: Shape) -> nn.Module:
    match layer:
        case Conv():
            padding = layer.kernel // 2
            return nn.Conv2d(taken.channels, layer.channels, layer.kernel, layer.stride, padding, bias=False)
        case BatchNorm():
            return nn.BatchNorm2d(taken.channels)
        case Relu():
            return nn.ReLU()
        case MaxPool():
            return nn.MaxPool2d(layer.kernel, layer.stride, layer.kernel // 2)
        case GlobalPool():
            return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
        case Dropout():
            return nn.Dropout(layer.rate)
        case Dense():
            return nn.Linear(taken.channels, layer.units)
        case _:
            raise TypeError(f"{layer.kind} is no module")
