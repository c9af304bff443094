"""What a scrape costs the controller: processor time to make the text, and its size, by the number of nodes.

    .venv/bin/python benches/metrics.py [--nodes 1 8 64 1024]

A node has eight chips with every quantity, 40 temperatures, four interfaces, four disks, processors and memory.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import cast

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "training"))

from prometheus_client import CollectorRegistry  # noqa: E402
from prometheus_client.openmetrics.exposition import generate_latest  # noqa: E402

from run_benchmarks.metrics.families import RunCollector  # noqa: E402
from run_benchmarks.metrics.listener import MOST_NODES, RoundState, RunListener, RunState  # noqa: E402
from run_benchmarks.metrics.readings import LatestReadings  # noqa: E402
from run_benchmarks.names import Node, RunId  # noqa: E402
from run_benchmarks.results.table import aligned  # noqa: E402
from run_benchmarks.training_state import TrainingState  # noqa: E402
from utils.telemetry.quantities import QUANTITIES  # noqa: E402
from utils.telemetry.records import Sample, Scope, SourceInfo, ticks_of  # noqa: E402

RUN = RunId("run20260102030405", "run20260102030405-abcdef", "2026-01-02T03:04:05+00:00")
SOURCES = {"acme": 8, "temperature": 40, "network": 4, "disk": 4, "cpu": 1, "mem": 1}
TIMES = 3


@dataclass(frozen=True)
class Host:
    """What a scrape needs of a node."""

    rank: int
    host: str


def state_of(nodes: int) -> RunState:
    """A round on so many nodes, each of whose sources was read just now."""
    hosts = [cast(Node, Host(rank, f"node{rank}")) for rank in range(nodes)]
    readings = {host: read() for host in hosts[:MOST_NODES]}
    of_round = RoundState(
        "toy:pytorch:X1:1:8:1",
        1,
        0.0,
        False,
        TrainingState(),
        nodes=dict.fromkeys(hosts, True),
        readings=readings,
    )
    return RunState(RUN, {of_round.case: 1}, round=of_round)


def read() -> LatestReadings:
    """What one node's monitor has written."""
    readings = LatestReadings(str)
    for source, devices in SOURCES.items():
        is_chip = source == "acme"
        names = [each.name for each in QUANTITIES] if is_chip else ["temperature_c"]
        readings.take(SourceInfo(1, source, Scope.ACCELERATOR if is_chip else Scope.HOST, 1000.0))
        values = dict.fromkeys(names, 50.0)
        for tick in ticks_of(Sample(1, source, str(device), **values) for device in range(devices)):
            readings.take(tick)
    return readings


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, nargs="+", default=[1, 8, 64, 1024])
    rows = [["nodes", "series", "KiB", "CPU s, least of 3"]]
    for nodes in parser.parse_args().nodes:
        registry = CollectorRegistry(auto_describe=False)
        state = state_of(nodes)
        listener = cast(RunListener, SimpleNamespace(state=lambda state=state: state))
        registry.register(RunCollector(listener))
        took, text = [], b""
        for _ in range(TIMES):
            began = time.thread_time()
            text = generate_latest(registry)
            took.append(time.thread_time() - began)
        series = sum(not line.startswith(b"#") for line in text.splitlines())
        rows.append([str(nodes), str(series), f"{len(text) / 1024:.0f}", f"{min(took):.3f}"])
    print(aligned(rows))


if __name__ == "__main__":
    main()
