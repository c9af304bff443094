"""What can be seen of a PyTorch model and optimizer, for `driver/inspection.py`."""

from __future__ import annotations

import copy
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode, flop_registry

from benchmarks.driver.batches import mapped
from benchmarks.driver.differences import OptimizerFacts, Weight, family_of
from benchmarks.driver.inspection import NotCountableError
from benchmarks.driver.random_states import host_random_state, set_host_random_state

_CPU = torch.device("cpu")
# What a step depends on -> what stands for it where an optimizer has no such setting.
_SETTINGS: Mapping[str, Any] = {
    "lr": None, "betas": None, "eps": None, "weight_decay": None,
    "momentum": 0, "amsgrad": False, "maximize": False, "bias_correction": True,
}  # fmt: skip
_COUNTED_NAMESPACES = ("aten", "prim", "prims")


def model_facts(model: nn.Module) -> dict[str, Weight]:
    """Every parameter by name; one that stands in several places once."""
    return {
        name: Weight(tuple(weight.shape), _dtype(weight), weight.requires_grad, _checksum(weight))
        for name, weight in model.named_parameters()
    }


def optimizer_facts(optimizer: Any) -> OptimizerFacts:
    """Of an optimizer, or of the one that a wrapper holds."""
    inner = getattr(optimizer, "optimizer", optimizer)
    groups = inner.param_groups
    settings = tuple(_settings(group, weight) for group in groups for weight in group["params"])
    decoupled = any(group.get("decoupled_weight_decay") for group in groups)
    return OptimizerFacts(_name_of(inner), family_of(inner, decoupled=decoupled), settings)


@dataclass(frozen=True)
class Shadow:
    """A model whose tensors have shapes and no memory, and the mode in which they live; as if on a CPU."""

    model: nn.Module
    mode: FakeTensorMode


def shadow(model: nn.Module) -> Shadow:
    """A copy without memory.

    Raises:
        NotCountableError: the model cannot be copied.
    """
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    try:
        memo = {id(tensor): _faked(mode, tensor) for tensor in (*model.parameters(), *model.buffers())}
        copied: nn.Module = copy.deepcopy(model, memo)
    except Exception as error:  # a vendor's module may hold anything
        raise NotCountableError(f"the model cannot be copied ({_summary(error)})") from error
    return Shadow(copied, mode)


def forward_flops(shadow: Shadow, loss: Callable[[Any, Any], Any], inputs: Any, *, training: bool) -> float:
    """Operations of the forward pass, by PyTorch's own counter of matrix products and convolutions.

    Args:
        training: as in training, with gradients to come; else as in evaluation. Random states stay as they are.

    Raises:
        NotCountableError: it cannot be run without data, or has kernels that the counter does not know.
    """
    operators = _ForeignOperators()
    counter: Any = FlopCounterMode(display=False)
    try:
        there = mapped(inputs, Tensor, lambda tensor: _faked(shadow.mode, tensor))
        shadow.model.train(training)
        with _kept_random_states(), shadow.mode, torch.set_grad_enabled(training), counter, operators:
            loss(shadow.model, there)
    except Exception as error:  # what depends on values has none here
        raise NotCountableError(f"the forward pass does not run without data ({_summary(error)})") from error
    if operators.names:
        names = ", ".join(sorted(operators.names))
        raise NotCountableError(f"nobody counts the operations of {names}")
    return float(counter.get_total_flops())


@contextmanager
def _kept_random_states() -> Iterator[None]:
    """Layers that are left out at random are the same ones in every count, and training draws as without a count."""
    host = host_random_state()
    try:
        with torch.random.fork_rng(devices=()):
            yield
    finally:
        set_host_random_state(host)


class _ForeignOperators(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes the operators that are not PyTorch's own and have no formula."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.namespace not in _COUNTED_NAMESPACES and func.overloadpacket not in flop_registry:
            self.names.add(f"{func.namespace}::{func.__name__}")
        return func(*args, **(kwargs or {}))


def _settings(group: Mapping[str, Any], weight: Tensor) -> dict[str, Any]:
    values = {name: _plain(group.get(name, absent)) for name, absent in _SETTINGS.items()}
    return {"shape": tuple(weight.shape), "dtype": _dtype(weight), **values}


def _plain(value: Any) -> Any:
    """Settings as they compare: a tensor of one number as the number, a list as a tuple."""
    if isinstance(value, Tensor):
        return value.item() if value.numel() == 1 else tuple(value.tolist())
    return tuple(map(_plain, value)) if isinstance(value, (list, tuple)) else value


def _dtype(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _checksum(tensor: Tensor) -> int:
    values = tensor.detach().cpu().contiguous().reshape(-1)
    return zlib.crc32(values.view(torch.uint8).numpy().data)


def _faked(mode: FakeTensorMode, tensor: Tensor) -> Tensor:
    with mode:
        there = mode.from_tensor(tensor.detach()).to(_CPU)
        return nn.Parameter(there, tensor.requires_grad) if isinstance(tensor, nn.Parameter) else there


def _name_of(thing: object) -> str:
    return f"{type(thing).__module__}.{type(thing).__qualname__}"


def _summary(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0][:120]}"
