"""Frameworks: how ranks are started inside a unit. `open_framework` is the way in."""

from __future__ import annotations

from collections.abc import Callable

from run_benchmarks.frameworks.base import Framework
from run_benchmarks.frameworks.pytorch import PyTorch
from utils.errors import FlagPerfError, nearest

FRAMEWORKS: dict[str, Callable[[], Framework]] = {"pytorch": PyTorch}


def open_framework(name: str) -> Framework:
    """The framework of `name`, whose version (`pytorch_1.8`) is the image's business, not the launcher's.

    Raises:
        FlagPerfError: no such framework is known.
    """
    base = name.partition("_")[0]
    if base not in FRAMEWORKS:
        raise FlagPerfError(
            f"no launcher for the framework {name}; {nearest(base, FRAMEWORKS)}".rstrip("; "),
            remedy=f"choose one of {', '.join(FRAMEWORKS)}",
        )
    return FRAMEWORKS[base]()
