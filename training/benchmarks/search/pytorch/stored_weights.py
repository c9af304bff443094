"""The weights of a trained network on their way to its children: safetensors with the architecture that they are of."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from benchmarks.search.architecture import Architecture, ArchitectureError, as_json, parse
from benchmarks.search.pytorch.network import build
from benchmarks.search.weight_exchange import LARGEST_HEADER

ARCHITECTURE = "architecture"  # in the file's own metadata
_METADATA = "__metadata__"
_HEADER_LENGTH = 8  # bytes, little-endian, of the JSON that follows them
_TYPES = {torch.float32: "F32", torch.int64: "I64"}  # of all that a network has, as safetensors calls them


class WeightsError(Exception):
    """Bytes are not the weights of a network; says why."""


@dataclass(frozen=True)
class StoredWeights:
    """A network as it was trained: its architecture, and its state on the CPU."""

    architecture: Architecture
    state: Mapping[str, Tensor]

    def as_bytes(self) -> bytes:
        """What `read` takes."""
        tensors = {name: tensor.contiguous() for name, tensor in self.state.items()}
        return save(tensors, {ARCHITECTURE: as_json(self.architecture).decode()})

    @classmethod
    def read(cls, data: bytes) -> StoredWeights:
        """What another worker stored.

        Raises:
            WeightsError: it is cut off, or not the state of the network that it names.
        """
        try:
            length = int.from_bytes(data[:_HEADER_LENGTH], "little")
            if length > LARGEST_HEADER:
                raise WeightsError(f"a header of {length} bytes, {LARGEST_HEADER} at most")
            header = json.loads(data[_HEADER_LENGTH : _HEADER_LENGTH + length])
            architecture = parse(header[_METADATA][ARCHITECTURE])
            _refuse_other_tensors(header, architecture)
            state = load(data)
        except (SafetensorError, ArchitectureError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise WeightsError(f"{type(error).__name__}: {error}") from error
        if not all(bool(tensor.isfinite().all()) for tensor in state.values()):
            raise WeightsError("there are values in them that are no numbers")
        return cls(architecture, state)


def _refuse_other_tensors(header: Mapping[str, Any], architecture: Architecture) -> None:
    """By what the header says of them, before there is any."""
    with torch.device("meta"):
        state = build(architecture).state_dict()
    wanted = {name: (list(each.shape), _TYPES[each.dtype]) for name, each in state.items()}
    there = {name: (each["shape"], each["dtype"]) for name, each in header.items() if name != _METADATA}
    if wanted != there:
        names = sorted(name for name in {*wanted, *there} if wanted.get(name) != there.get(name))
        raise WeightsError(f"{len(names)} tensors are not the architecture's: {', '.join(names[:3])}")
