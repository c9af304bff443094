"""Frameworks: how a node's ranks are started. `open_framework` is the way in."""

from __future__ import annotations

from run_benchmarks.frameworks.base import Framework
from run_benchmarks.frameworks.node_scripts import (
    DeepSpeed,
    DeepSpeedTorch,
    FlagScale,
    Megatron,
    MegatronDeepSpeed,
    TensorFlow,
)
from run_benchmarks.frameworks.paddle import Paddle
from run_benchmarks.frameworks.pytorch import PyTorch
from utils.errors import FlagPerfError, nearest

_KINDS = (PyTorch, Paddle, Megatron, MegatronDeepSpeed, DeepSpeed, DeepSpeedTorch, FlagScale, TensorFlow)
FRAMEWORKS: dict[str, Framework] = {kind.name: kind() for kind in _KINDS}
# What stands in the place of a framework where FlagPerf's cases are started by something else, and by what.
STARTED_ELSEWHERE = {
    "in_container": "it is started by hand in containers that the user runs, which reach each other by ssh",
    "in_cluster": "it is started by the cluster's own scheduler (sbatch)",
}


def open_framework(name: str) -> Framework:
    """The framework `name`, which may carry a version (`pytorch_1.8`).

    Raises:
        FlagPerfError: there is no such framework.
    """
    plain = name.partition("_")[0]
    if plain not in FRAMEWORKS:
        raise FlagPerfError(
            f"no such framework: {plain} {nearest(plain, FRAMEWORKS)}".rstrip(),
            remedy=f"choose one of {', '.join(FRAMEWORKS)}",
        )
    return FRAMEWORKS[plain]
