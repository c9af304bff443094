"""Frameworks: how a node's ranks are started. `open_framework` is the way in."""

from __future__ import annotations

from collections.abc import Callable

from run_benchmarks.frameworks.base import Framework
from run_benchmarks.frameworks.launchers import LAUNCHERS, Launcher
from run_benchmarks.frameworks.paddle import Paddle
from run_benchmarks.frameworks.pytorch import PyTorch
from utils.errors import FlagPerfError, nearest

FRAMEWORKS: dict[str, Callable[[Launcher], Framework]] = {"pytorch": PyTorch, "paddle": Paddle}


def open_framework(name: str, launcher: str = "flagperf") -> Framework:
    """The framework `name`, which may carry a version (`pytorch_1.8`), with one of LAUNCHERS.

    Raises:
        FlagPerfError: there is no such framework.
    """
    plain = name.partition("_")[0]
    if plain not in FRAMEWORKS:
        raise FlagPerfError(
            f"no such framework: {plain} {nearest(plain, FRAMEWORKS)}".rstrip(),
            remedy=f"choose one of {', '.join(FRAMEWORKS)}",
        )
    return FRAMEWORKS[plain](LAUNCHERS[launcher])
