"""State on disk, by Paddle, and what its optimizers and random generators need to be found again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import nullcontext
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import paddle
from paddle import nn
from paddle.base import core

from benchmarks.driver.paddle.devices import Device
from utils.errors import FlagPerfError

_GENERATOR_FIELDS = 4  # device, seed, offset, the engine's own text as character codes
_ONE_BYTE_EACH = "latin-1"


def save(state: Any, target: Path | BytesIO) -> None:
    """Write `state` as NumPy's `.npz`: its tensors, and all else as JSON. A tensor is copied when its turn comes.

    Raises:
        OSError: the disk does not take it.
        FlagPerfError: it holds something else than plain data and tensors.
    """
    tensors: list[Any] = []
    try:
        tree = json.dumps(_packed(state, tensors)).encode()
    except (TypeError, ValueError) as error:
        raise FlagPerfError(
            f"the state has what a checkpoint cannot hold: {error}",
            where="checkpoint",
            remedy="let the vendor's optimizer and scaler keep their state in plain data and tensors",
        ) from error
    arrays = {str(number): tensor for number, tensor in enumerate(tensors)}
    with target.open("wb") if isinstance(target, Path) else nullcontext(target) as stream:
        np.savez(stream, tree=np.frombuffer(tree, np.uint8), **arrays)


def load(source: BytesIO) -> Any:
    """What `save` wrote. Unlike `paddle.load`, which unpickles, this runs no code that a file may bring."""
    with np.load(source, allow_pickle=False) as arrays:
        return _unpacked(json.loads(arrays["tree"].tobytes()), arrays)


def _packed(value: Any, tensors: list[Any]) -> Any:
    """`value` as JSON, which has no tuples, no tensors, and no keys but text."""
    if isinstance(value, paddle.Tensor):
        tensors.append(value)
        return {"tensor": len(tensors) - 1}
    if isinstance(value, Mapping):
        return {"dict": [[key, _packed(item, tensors)] for key, item in value.items()]}
    if isinstance(value, (list, tuple)):
        items = [_packed(item, tensors) for item in value]
        return {"tuple": items} if isinstance(value, tuple) else items
    return value


def _unpacked(value: Any, arrays: Mapping[str, Any]) -> Any:
    if isinstance(value, list):
        return [_unpacked(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "tensor":
        return paddle.to_tensor(
            arrays[str(content)]
        )  # NumPy has no bfloat16: Paddle gives and takes it as uint16
    return {"dict": dict, "tuple": tuple}[kind](_unpacked(content, arrays))


def scaler_state(state: Mapping[str, Any]) -> dict[str, Any]:
    """A scaler's state; its arrays, of one number, as lists."""
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in state.items()}


def optimizer_state(layer: nn.Layer, state: Mapping[str, Any]) -> dict[str, Any]:
    """An optimizer's state under the layer's own names of its parameters.

    Paddle numbers parameters as they are made in a process: `linear_7.w_0` may be another one elsewhere.
    """
    return _renamed(state, {parameter.name: f"<{name}>" for name, parameter in layer.named_parameters()})


def optimizer_state_here(layer: nn.Layer, state: Mapping[str, Any]) -> dict[str, Any]:
    """The state for this process's optimizer, which knows parameters by their numbers."""
    return _renamed(state, {f"<{name}>": parameter.name for name, parameter in layer.named_parameters()})


def random_state(device: Device) -> list[tuple[Any, ...]]:
    """Of the generators that Paddle draws from on this device."""
    return [_fields(generator.get_state()) for generator in _generators(device)]


def set_random_state(device: Device, states: list[tuple[Any, ...]]) -> None:
    """Put the generators back into the state that `random_state` gave."""
    for generator, (kind, seed, offset, engine) in zip(_generators(device), states, strict=True):
        # A fresh object: one that has a state keeps it, whatever is set.
        state = core.GeneratorState.__new__(core.GeneratorState)
        state.__setstate__((kind, seed, offset, list(engine.encode(_ONE_BYTE_EACH))))
        generator.set_state(state)


def _generators(device: Device) -> list[Any]:
    """The CPU's, and the device's own."""
    generators = [core.default_cpu_generator()]
    number = int(device.place.rpartition(":")[2]) if ":" in device.place else 0
    if device.kind == "gpu":
        generators.append(core.default_cuda_generator(number))
    elif device.kind == "xpu":
        generators.append(core.default_xpu_generator(number))
    elif not device.is_cpu:
        generators.append(core.default_custom_device_generator(core.CustomPlace(device.kind, number)))
    return generators


def _fields(state: Any) -> tuple[Any, ...]:
    fields = state.__getstate__()
    if not isinstance(fields, tuple) or len(fields) != _GENERATOR_FIELDS:
        raise FlagPerfError(
            f"paddle {paddle.version.full_version} describes its random generators in another way than 3.3",
            where="checkpoint",
            remedy="set save_steps = None, or use PaddlePaddle 3.3",
        )
    kind, seed, offset, engine = fields
    return (kind, seed, offset, bytes(engine).decode(_ONE_BYTE_EACH))


def _renamed(state: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """`linear_0.w_0_moment1_0` -> `<...>_moment1_0`: the longest of `names` that a key begins with is replaced."""
    renamed = {}
    for key, value in state.items():
        owner = max(
            (name for name in names if key == name or key.startswith(f"{name}_")), key=len, default=""
        )
        value = _renamed(value, names) if isinstance(value, Mapping) else value
        renamed[names[owner] + key[len(owner) :] if owner else key] = value
    return renamed
