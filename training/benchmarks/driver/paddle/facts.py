"""What can be seen of a Paddle model and optimizer, for `driver/inspection.py`."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import paddle
from paddle import nn

from benchmarks.driver.differences import OptimizerFacts, Weight, family_of
from benchmarks.driver.inspection import NotCountableError

_NOT_COUNTED = "PaddlePaddle has no counter of operations"


def model_facts(model: nn.Layer) -> dict[str, Weight]:
    """Every parameter by name; one that stands in several places once."""
    return {
        name: Weight(tuple(weight.shape), _dtype(weight), not weight.stop_gradient, _checksum(weight))
        for name, weight in model.named_parameters()
    }


def optimizer_facts(optimizer: Any) -> OptimizerFacts:
    """Of an optimizer, or of the one that a wrapper holds."""
    inner = getattr(optimizer, "_inner_opt", optimizer)
    family = family_of(inner, decoupled=False)
    kind = f"{type(inner).__module__}.{type(inner).__qualname__}"
    return OptimizerFacts(kind, family, tuple(_settings(inner, weight) for weight in _weights(inner)))


def shadow(model: nn.Layer) -> Any:
    """None is to be had.

    Raises:
        NotCountableError: always.
    """
    raise NotCountableError(_NOT_COUNTED)


def forward_flops(model: Any, loss: Callable[[Any, Any], Any], inputs: Any, *, training: bool) -> float:
    """None are counted.

    Raises:
        NotCountableError: always.
    """
    raise NotCountableError(_NOT_COUNTED)


def _weights(optimizer: Any) -> Iterator[Any]:
    """The parameters, which stand in a list or in groups of settings."""
    for entry in optimizer._parameter_list or ():
        yield from entry["params"] if isinstance(entry, dict) else (entry,)


def _settings(optimizer: Any, weight: Any) -> dict[str, Any]:
    decays = getattr(optimizer, "_apply_decay_param_fun", None)
    decay = _plain(getattr(optimizer, "_weight_decay", None) or optimizer.regularization)
    masters = getattr(optimizer, "_multi_precision", False)
    own_rate = getattr(optimizer, "_lr_ratio", None)
    rate = weight.optimize_attr.get("learning_rate", 1.0) * (own_rate(weight) if own_rate else 1.0)
    return {
        "shape": tuple(weight.shape),
        "dtype": "float32" if masters else _dtype(weight),
        "lr": optimizer.get_lr() * rate,
        "betas": tuple(_plain(getattr(optimizer, name, None)) for name in ("_beta1", "_beta2")),
        "eps": _plain(getattr(optimizer, "_epsilon", None)),
        "weight_decay": decay if decays is None or decays(weight.name) else 0.0,
        "amsgrad": bool(getattr(optimizer, "_amsgrad", False)),
        "gradient clipping": _clip(optimizer._grad_clip),
    }


def _clip(clip: Any) -> str:
    return "none" if clip is None else f"{type(clip).__name__} {getattr(clip, 'clip_norm', '')}".strip()


def _plain(value: Any) -> Any:
    if isinstance(value, paddle.Tensor):
        return value.item()
    return value if value is None or isinstance(value, (bool, int, float)) else str(value)


def _dtype(tensor: Any) -> str:
    return str(tensor.dtype).removeprefix("paddle.")


def _checksum(tensor: Any) -> int:
    return zlib.crc32(np.ascontiguousarray(tensor.detach().numpy()).tobytes())
