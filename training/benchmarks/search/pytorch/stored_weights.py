"""The weights of a trained network on their way to its children: safetensors with the architecture that they are of."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from safetensors.torch import load, save
from torch import Tensor

from benchmarks.search.architecture import Architecture, as_json, parse
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
            WeightsError: it is cut off, not the state of the network that it names, or none that training comes to.
                It says nothing in that worker's own words: in this one's log they might be taken for events.
        """
        try:
            length = int.from_bytes(data[:_HEADER_LENGTH], "little")
            if length > LARGEST_HEADER:
                raise WeightsError(f"a header of {length} bytes, {LARGEST_HEADER} at most")
            header = json.loads(data[_HEADER_LENGTH : _HEADER_LENGTH + length])
            architecture = parse(header[_METADATA][ARCHITECTURE])
            _refuse_other_tensors(header, architecture)
            state = load(data)
            _refuse_impossible_values(state)
        except WeightsError:
            raise
        except Exception as error:  # what another worker makes up can be refused in many ways
            raise WeightsError(f"they cannot be read: {type(error).__name__}") from error
        return cls(architecture, state)


def _refuse_other_tensors(header: Mapping[str, Any], architecture: Architecture) -> None:
    """By what the header says of them, before there is any."""
    with torch.device("meta"):
        state = build(architecture).state_dict()
    wanted = {name: (list(each.shape), _TYPES[each.dtype]) for name, each in state.items()}
    there = {name: (each["shape"], each["dtype"]) for name, each in header.items() if name != _METADATA}
    if wanted != there:
        others = len(there.keys() - wanted.keys())
        names = sorted(name for name in wanted if wanted[name] != there.get(name))
        named = f": {', '.join(names[:3])}" if names else ""  # none by a name that the other worker gave it
        raise WeightsError(f"{others + len(names)} tensors are not the architecture's{named}")


def _refuse_impossible_values(state: Mapping[str, Tensor]) -> None:
    """With a variance below zero a child's validation would give no numbers, and nothing would say so."""
    for name, tensor in state.items():
        if not bool(tensor.isfinite().all()):
            raise WeightsError("there are values in them that are no numbers")
        if name.endswith(".running_var") and bool((tensor < 0).any()):
            raise WeightsError("there are variances in them that are below zero")
