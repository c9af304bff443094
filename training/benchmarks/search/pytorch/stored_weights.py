"""The weights of a trained network on their way to its children: safetensors with the architecture that they are of."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from benchmarks.search.architecture import Architecture, ArchitectureError, as_json, parse
from benchmarks.search.pytorch.network import build

ARCHITECTURE = "architecture"  # in the file's own metadata
_HEADER_LENGTH = 8  # bytes, little-endian, of the JSON that follows them


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
            header = json.loads(data[_HEADER_LENGTH : _HEADER_LENGTH + length])
            stored = cls(parse(header["__metadata__"][ARCHITECTURE]), load(data))
        except (SafetensorError, ArchitectureError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise WeightsError(f"{type(error).__name__}: {error}") from error
        stored._check()
        return stored

    def _check(self) -> None:
        with torch.device("meta"):
            wanted = build(self.architecture).state_dict()
        kinds = [
            {name: (each.shape, each.dtype) for name, each in state.items()} for state in (wanted, self.state)
        ]
        if kinds[0] != kinds[1]:
            names = sorted(
                name for name in {*kinds[0], *kinds[1]} if kinds[0].get(name) != kinds[1].get(name)
            )
            raise WeightsError(f"{len(names)} tensors are not the architecture's: {', '.join(names[:3])}")
