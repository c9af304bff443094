"""What the driver does in a way that a vendor may replace.

A vendor's `extern/` folder may define functions of these names, in any of its files. Each replaces the driver's own
(`driver/<framework>/hooks.py`) and has its signature (`utils/hook_form.py`). They are loaded before anything asks for
the device:

    convert_model(config, model) -> model             before it goes to the device
    create_optimizer(config, model) -> optimizer      in Paddle with the gradients' clipping in it
    model_to_fp16(config, model, optimizer) -> (model, optimizer)
    model_to_ddp(config, model) -> model              only with more than one rank
    create_grad_scaler(config, device_type) -> scaler or None     as torch.amp.GradScaler or paddle.amp.GradScaler
    backward(config, loss, optimizer, scaler) -> None of one micro-batch

`config` is the driver's `Configuration`. What they change is looked at by `driver/inspection.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.driver.extern import vendor_functions
from utils.code_files import code_files
from utils.errors import FlagPerfError
from utils.hook_form import HOOKS

Hook = Callable[..., Any]


@dataclass(frozen=True)
class Hooks:
    """The functions in use.

    own: the driver's, as a module. in_force: which are the vendor's -> the file of its folder that defines it.
    files: of that folder, path -> SHA-256.
    """

    convert_model: Hook
    create_optimizer: Hook
    model_to_fp16: Hook
    model_to_ddp: Hook
    create_grad_scaler: Hook
    backward: Hook
    own: ModuleType
    in_force: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


def load_hooks(own: ModuleType, folder: Path | None) -> Hooks:
    """The vendor's hooks over those of a framework's module. A folder that is absent is normal.

    Raises:
        FlagPerfError: a hook is defined twice, or a function's name is nearly that of a hook.
    """
    files = code_files(folder) if folder else {}  # before its code is executed
    functions = vendor_functions(folder, tuple(HOOKS))
    in_use = {name: getattr(own, name) for name in HOOKS}
    in_use |= {name: _answering(name, path, function) for name, (path, function) in functions.items()}
    in_force = {name: path.name for name, (path, _) in functions.items()}
    return Hooks(**in_use, own=own, in_force=in_force, files=files)


def _answering(name: str, path: Path, function: Hook) -> Hook:
    """The hook `name` of the vendor's file, refused where it does not return what it must."""
    wanted = HOOKS[name].returns
    if not wanted:
        return function

    @wraps(function)
    def hook(*arguments: Any) -> Any:
        result = function(*arguments)
        several = result if isinstance(result, (tuple, list)) else (result,)
        if result is None or (len(wanted) > 1 and len(several) != len(wanted)):
            given = "nothing" if result is None else type(result).__name__
            remedy = f"return {', '.join(wanted)}"
            raise FlagPerfError(f"the hook {name} returns {given}", where=str(path), remedy=remedy)
        return result

    return hook
