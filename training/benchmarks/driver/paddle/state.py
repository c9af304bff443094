"""State on disk, by Paddle, and what its optimizers and random generators need to be found again."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
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
    """Write `state`: plain data but for bytes, and tensors.

    Raises:
        OSError: the disk does not take it.
        FlagPerfError: it holds what cannot be written.
    """
    try:
        paddle.save(state, str(target) if isinstance(target, Path) else target)
    except (pickle.PicklingError, AttributeError, TypeError, ValueError, NotImplementedError) as error:
        raise FlagPerfError(
            f"the state has what a checkpoint cannot hold: {error}",
            where="checkpoint",
            remedy="let the vendor's optimizer and scaler keep their state in plain data and tensors",
        ) from error


def load(source: BytesIO) -> Any:
    """What `save` wrote. Paddle reads it as a pickle: only a file that this user's own run wrote may come here."""
    return paddle.load(source)


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
