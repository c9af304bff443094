"""The hooks: what the driver does in a way that a vendor may replace. The plan holds a vendor's code to their form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class HookForm:
    """The arguments that a hook is given, and what it must return; nothing where None is an answer as well."""

    arguments: tuple[str, ...]
    returns: tuple[str, ...] = ()


HOOKS: Mapping[str, HookForm] = {
    "convert_model": HookForm(("config", "model"), ("model",)),
    "create_optimizer": HookForm(("config", "model"), ("optimizer",)),
    "model_to_fp16": HookForm(("config", "model", "optimizer"), ("model", "optimizer")),
    "model_to_ddp": HookForm(("config", "model"), ("model",)),
    "create_grad_scaler": HookForm(("config", "device_type")),
    "backward": HookForm(("config", "loss", "optimizer", "scaler")),
}


def call_of(name: str) -> str:
    """How a hook is called: `convert_model(config, model)`."""
    return f"{name}({', '.join(HOOKS[name].arguments)})"
