"""Which folders of a node are in a run's result folder, whole: what the node still has of them is spare."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from run_benchmarks.names import node_folder_name
from run_benchmarks.reading import read_object
from run_benchmarks.results.round_folders import round_folders
from utils.errors import FlagPerfError

# A round's folder, or that of an attempt at it which was set aside here; a node calls both after the round.
_ATTEMPT = re.compile(r"(round\d{1,9})(?:\.attempt(\d{1,9}))?", re.ASCII)


def collected(run_folder: Path, host: str, kept: Collection[str]) -> list[str]:
    """The folders of a host that are here, as they are called on it, each of the last attempt that it took part in.

    Args:
        kept: those of which something is on their hosts alone.
    """
    attempts: dict[str, dict[float, Path]] = {}
    for case, name in _folders(run_folder):
        if match := _ATTEMPT.fullmatch(name):
            of_round = attempts.setdefault(f"{case}/{match[1]}", {})
            of_round[float(match[2] or math.inf)] = run_folder / case / name
    names = (
        f"{name}/{node}"
        for name, of_round in attempts.items()
        for node in _whole((of_round[number] for number in sorted(of_round)), host)
    )
    return [name for name in names if name not in kept]


def _folders(run: Path) -> list[tuple[str, str]]:
    try:
        return [(case, name) for case, names in round_folders(run).items() for name in names]
    except OSError:  # somebody took it away: nothing of it is here
        return []


def _whole(attempts: Iterable[Path], host: str) -> Iterator[str]:
    """Names of the host's folders in the last of the attempts, the oldest first, that it took part in."""
    here: dict[str, bool] = {}
    for folder in attempts:
        hosts = _hosts_of(folder)
        if hosts is None:
            return  # what lies on the host may be of this one
        nodes = (node_folder_name(host, rank) for rank, each in enumerate(hosts) if each == host)
        here |= {node: (folder / node).is_dir() for node in nodes}
    yield from (node for node, is_here in here.items() if is_here)


def _hosts_of(folder: Path) -> list[object] | None:
    """The hosts of an attempt by its record, which is written when its logs have come; None where it has none."""
    try:
        hosts = (read_object(folder / "round.json") or {}).get("hosts")
    except FlagPerfError:
        return None
    return hosts if isinstance(hosts, list) else None
