"""Tensors of a device that is not there: each has one on the CPU behind it, with which everything is computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

# What PyTorch's autocast does in the low precision on any device, as far as models here call it. What it does in fp32
# (softmax, losses) is left in the type that comes: a kernel's own business.
LOW_PRECISION = (
    "linear", "matmul", "mm", "bmm", "addmm", "baddbmm", "scaled_dot_product_attention", "convolution",
)  # fmt: skip
# What torch.tensor([tensor, ...], device=...) calls below __torch_dispatch__, where no fallback takes our tensors: it
# reads each of those, and fills what it made.
BELOW_DISPATCH = ("_local_scalar_dense", "copy_")
_CPU = torch.device("cpu")
_counts: Counter[str] = Counter()
_products: set[str] = set()


def count_operators_of() -> dict[str, Any]:
    """How many operators have run on the device until now, collectives by name, types that autocast multiplied in."""
    collectives = {name: count for name, count in _counts.items() if name.startswith("c10d::")}
    return {
        "operators": _counts.total(),
        "collectives": collectives,
        "autocast": sorted(_products),
    }


class StandInTensor(Tensor):
    """A tensor on the device; `behind` is the one on the CPU that has its values."""

    behind: Tensor

    @staticmethod
    def __new__(cls: type[StandInTensor], behind: Tensor) -> StandInTensor:
        made: StandInTensor = Tensor._make_wrapper_subclass(
            cls,
            behind.size(),
            strides=behind.stride(),
            storage_offset=behind.storage_offset(),
            dtype=behind.dtype,
            layout=behind.layout,
            device=torch.device(_device_type(), 0),
        )
        return made

    def __init__(self, behind: Tensor) -> None:
        self.behind = behind

    def __repr__(self) -> str:  # type: ignore[override]
        return f"{type(self).__name__}({self.behind!r})"

    def __reduce_ex__(self, protocol: Any) -> Any:
        """As plain data, which a checkpoint may hold: loading asks for the host's memory whatever the device."""
        return self.behind.__reduce_ex__(protocol)  # type: ignore[no-untyped-call]

    def tolist(self) -> Any:
        """PyTorch refuses it to tensors of any other class than its own."""
        return self.behind.tolist()

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, operator: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        return computed(operator, args, kwargs or {})


def register(device_type: str) -> list[Any]:
    """Let PyTorch compute on the device; what is returned must be kept."""
    library: Any = torch.library  # has no types
    every, own = library.Library("_", "IMPL"), library.Library("aten", "IMPL")
    every.fallback(lambda operator, *args, **kwargs: computed(operator, args, kwargs), "PrivateUse1")
    every.fallback(library.fallthrough_kernel, "AutocastPrivateUse1")
    for name in LOW_PRECISION:
        operator = getattr(torch.ops.aten, name).default
        own.impl(name, _lowered(operator, device_type), "AutocastPrivateUse1")
    for name in BELOW_DISPATCH:
        own.impl(name, _implemented(getattr(torch.ops.aten, name).default), "PrivateUse1")
    return [every, own]


def computed(operator: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """What `operator` gives, on the device where it is asked for there or anything that it takes lies there."""
    if operator is torch.ops.aten.record_stream.default:  # no work on a tensor is still under way
        return None
    taken = {id(leaf.behind): leaf for leaf in pytree.tree_leaves((args, kwargs)) if _is_ours(leaf)}
    asked = kwargs.get("device")
    on_device = bool(taken) if asked is None else _is_this_device(asked)
    behind_args, behind_kwargs = pytree.tree_map(_behind, (tuple(args), dict(kwargs)))
    result = operator(*behind_args, **behind_kwargs)
    _counts[operator.name() if operator.namespace == "c10d" else "others"] += 1

    def placed(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        if id(value) in taken:  # computed in place
            return taken[id(value)]
        return StandInTensor(value) if on_device else value

    return pytree.tree_map(placed, result)


def _implemented(operator: Any) -> Callable[..., Any]:
    return lambda *args, **kwargs: computed(operator, args, kwargs)


def _is_ours(value: Any) -> bool:
    return isinstance(value, StandInTensor)


def _behind(value: Any) -> Any:
    if isinstance(value, StandInTensor):
        return value.behind
    return _CPU if isinstance(value, torch.device) and _is_this_device(value) else value


def _is_this_device(device: Any) -> bool:
    return torch.device(device).type == _device_type()


def _device_type() -> str:
    name: str = torch._C._get_privateuse1_backend_name()
    return name


def _lowered(operator: Any, device_type: str) -> Callable[..., Any]:
    """`operator` with what is of floating point cast to autocast's type, as on devices that PyTorch knows."""
    keys: Any = torch._C.DispatchKey  # whose types lack this one
    autocast = torch._C.DispatchKeySet(keys.AutocastPrivateUse1)

    def call(*args: Any, **kwargs: Any) -> Any:
        dtype = torch.get_autocast_dtype(device_type)
        _products.add(str(dtype).removeprefix("torch."))

        def cast(value: Any) -> Any:
            is_cast = isinstance(value, Tensor) and value.is_floating_point() and value.dtype != torch.float64
            return value.to(dtype) if is_cast else value

        low_args, low_kwargs = pytree.tree_map(cast, (args, kwargs))
        with torch._C._ExcludeDispatchKeyGuard(autocast):
            return operator(*low_args, **low_kwargs)

    return call
