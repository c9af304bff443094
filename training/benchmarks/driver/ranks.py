"""Which rank this process is, from the launcher's environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from utils.errors import FlagPerfError
from utils.node import RANKS_START_MS
from utils.parameters import ROUND

_CGROUP_CPU_LIMIT = Path("/sys/fs/cgroup/cpu.max")


@dataclass(frozen=True)
class RankEnvironment:
    """This process among all (`rank`, `world_size`) and among those of its host."""

    rank: int = 0
    world_size: int = 1
    local_rank: int = 0
    local_world_size: int = 1


def read_rank_environment(environment: Mapping[str, str] = os.environ) -> RankEnvironment:
    """RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE; a script without a launcher is one rank.

    Raises:
        FlagPerfError: a variable is not a whole number.
    """
    defaults = {"RANK": 0, "WORLD_SIZE": 1, "LOCAL_RANK": 0, "LOCAL_WORLD_SIZE": 1}
    try:
        values = [int(environment.get(name, default)) for name, default in defaults.items()]
    except ValueError as error:
        raise FlagPerfError(
            f"{error} in one of {', '.join(defaults)}",
            where="environment",
            remedy="start the script by a launcher (utils.node), which sets them",
        ) from None
    return RankEnvironment(*values)


def round_number(environment: Mapping[str, str] = os.environ) -> int:
    """Which round of its case this is, counted from 1; by hand there is one.

    Raises:
        FlagPerfError: the variable holds no such number.
    """
    text = environment.get(ROUND, "1")
    if not (text.isdecimal() and int(text)):
        raise FlagPerfError(f"{text!r} is not the number of a round", where=f"environment: {ROUND}")
    return int(text)


def ranks_start_ms(environment: Mapping[str, str] = os.environ) -> int | None:
    """When the node's first rank was started, in ms since the epoch; None without our launcher."""
    text = environment.get(RANKS_START_MS, "")
    return int(text) if text.isdecimal() else None


def usable_cores() -> int:
    """Cores that this process may use: its affinity, and its container's limit where there is one."""
    cores = len(os.sched_getaffinity(0))
    if _CGROUP_CPU_LIMIT.is_file():
        quota, _, period = _CGROUP_CPU_LIMIT.read_text(encoding="ascii").partition(" ")
        if quota.isdigit():
            cores = min(cores, max(1, int(quota) // int(period)))
    return cores


def threads_per_rank(environment: RankEnvironment, wanted: int | None) -> int:
    """Threads for the computation of one rank: more than its share of the cores would only get in the way."""
    return wanted or max(1, usable_cores() // environment.local_world_size)
