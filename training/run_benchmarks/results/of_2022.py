"""A result tree as FlagPerf of 2022 wrote it: logs alone, no plan and no result. What they tell takes their place.

`<case>/round<N>/<host>_noderank<i>/` has the ranks' logs and the monitors'; PerfLog lines and the names say the rest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from itertools import count, takewhile
from pathlib import Path

from run_benchmarks.results.planned import PlannedCase, PlannedFiles, PlannedSettings
from run_benchmarks.results.rank_logs import RANK_LOG, RankLog
from run_benchmarks.results.round_result import Observation
from utils.errors import FlagPerfError
from utils.node import rank_log_name
from utils.telemetry.lines import TELEMETRY_FILE
from utils.text_files import matching

NOTE = "written by a FlagPerf of 2022, which kept no plan and no result: read from its logs alone"
OWN_SCRIPT = "run_pretraining.py"  # each case had its own
NODE_FOLDER = re.compile(r"(.+)_noderank(0|[1-9]\d{0,4})", re.DOTALL)
START_LOG = re.compile(r"start_(.+)_task\.log")
# What this version writes, in a round or in a node's folder.
PRESENT = ("round.json", "result.json", f"*/{TELEMETRY_FILE}")


def cases_of_2022(rounds: Mapping[str, Sequence[Path]]) -> dict[str, PlannedCase]:
    """The cases of a run without plan, journal and summary; none where something in it is this version's.

    Args:
        rounds: case -> the folders of its rounds.
    """
    folders = [folder for of_case in rounds.values() for folder in of_case]
    if any(matching(folder, name) for folder in folders for name in PRESENT):
        return {}
    cases = {name: _case(name, of_case) for name, of_case in rounds.items()}
    return {name: case for name, case in cases.items() if case.settings.nnodes}


def observation_of_2022(case: str, number: int, folder: Path) -> Observation:
    """What the folder of a round tells in place of the controller."""
    nodes = _nodes(folder)
    started = _first_event(nodes[0][1] / rank_log_name(0)) if nodes else ""
    hosts = tuple(host for host, _ in nodes)
    return Observation(case=case, round=number, started=started, hosts=hosts, time_s=None, notes=(NOTE,))


def _case(name: str, rounds: Sequence[Path]) -> PlannedCase:
    """A case by what its rounds left: as many nodes and ranks as there are folders and logs."""
    nodes = max((_nodes(folder) for folder in rounds), key=len, default=[])
    names = [_names_in(node) for _, node in nodes]
    ranks = max((sum(bool(RANK_LOG.fullmatch(each)) for each in of_node) for of_node in names), default=0)
    starts = (match[1] for of_node in names for each in of_node if (match := START_LOG.fullmatch(each)))
    settings = PlannedSettings(name, next(starts, ""), len(nodes), max(ranks, 1), len(rounds))
    return PlannedCase(settings, PlannedFiles(OWN_SCRIPT), chip=None, parameters={}, deadline_s=0.0)


def _nodes(folder: Path) -> list[tuple[str, Path]]:
    """Host and folder of each node rank, from 0 up to where one is missing."""
    matches = filter(None, map(NODE_FOLDER.fullmatch, _names_in(folder)))
    by_rank = {int(match[2]): (match[1], folder / match[0]) for match in matches}
    return [by_rank[rank] for rank in takewhile(by_rank.__contains__, count())]


def _names_in(folder: Path) -> list[str]:
    try:
        return sorted(path.name for path in folder.iterdir())
    except OSError:  # that it cannot be listed is said where its logs are read
        return []


def _first_event(log: Path) -> str:
    """When a log has its first event, as ISO 8601 in UTC; empty where it has none."""
    try:
        _, first = next(RankLog(0, log, own_script=True).events(), (0, None))
        moment = datetime.fromtimestamp((first.time_ms if first else 0) / 1000, timezone.utc)
        return moment.isoformat(timespec="seconds") if first and first.time_ms else ""
    except (FlagPerfError, ValueError, OverflowError, OSError):
        return ""
