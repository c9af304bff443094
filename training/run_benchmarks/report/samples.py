"""A round's telemetry as columns: of each device of each node the times and values of its samples."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import accumulate, islice
from multiprocessing import get_context
from operator import attrgetter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from run_benchmarks.results.telemetry_file import SampleLine, TelemetryReader
from utils.errors import FlagPerfError
from utils.telemetry.lines import TELEMETRY_FILE
from utils.telemetry.records import Scope, SourceInfo
from utils.telemetry.windows import DEFAULT_INTERVAL_S

Values = NDArray[np.float64]
GIB_IN_MIB = 1024
MOST_DEVICES = 256  # of a node: who names more is not shown with them
MOST_BYTES = 4 * 2**30  # of the files of a round that are read
ROWS_AT_ONCE = 10_000
PARALLEL_BYTES = 32 * 2**20  # less than that is read sooner than another process starts


@dataclass(frozen=True)
class Quantity:
    """Something that is sampled. field: of Sample; factor: from its unit to this one."""

    name: str
    unit: str
    field: str
    factor: float = 1.0


QUANTITIES = (
    Quantity("Power", "W", "power_w"),
    Quantity("Utilisation", "%", "utilisation", 100),
    Quantity("Memory used", "GiB", "memory_used_mib", 1 / GIB_IN_MIB),
    Quantity("Temperature", "°C", "temperature_c"),
)
_COLUMNS = attrgetter("time_ms", *(each.field for each in QUANTITIES))


@dataclass
class DeviceSamples:
    """The samples of one device, in order of time: ms since the epoch, and a column a quantity, NaN where not read."""

    scope: Scope | None  # None where the monitor never spoke of its source
    interval_s: float
    times: Values
    columns: Mapping[str, Values]


@dataclass
class NodeSamples:
    """A node's, by source and device. doubt: what could not be read of it."""

    devices: dict[tuple[str, str], DeviceSamples] = field(default_factory=dict)
    doubt: str = ""


def read_samples(folders: Sequence[Path]) -> list[NodeSamples]:
    """The samples in node folders; of a node without any, none.

    Files of a day are read by several processes at once.
    """
    paths = [folder / TELEMETRY_FILE for folder in folders]
    sizes = [path.stat().st_size if path.is_file() else 0 for path in paths]
    totals = accumulate(sizes)
    wanted = [path if total <= MOST_BYTES else None for path, total in zip(paths, totals, strict=True)]
    workers = min(len(os.sched_getaffinity(0)), sum(size > 0 for size in sizes))
    if min(sum(sizes), MOST_BYTES) < PARALLEL_BYTES or workers < 2:
        return list(map(_read, wanted))
    with ProcessPoolExecutor(workers, get_context("forkserver")) as pool:
        return list(pool.map(_read, wanted))


def _read(path: Path | None) -> NodeSamples:
    if path is None:
        return NodeSamples(doubt=f"is not read: the round's files hold more than {MOST_BYTES} bytes")
    if not path.exists():
        return NodeSamples()
    reader, table, doubt = TelemetryReader(path), _Table(), ""
    samples = reader.samples()
    try:
        while part := list(islice(samples, ROWS_AT_ONCE)):
            table.add(part)
    except FlagPerfError as error:
        doubt = str(error)
    return NodeSamples(dict(table.devices(reader.sources)), doubt or reader.telemetry().doubt)


class _Table:
    """Samples as they come in: a row each, of its device's number, its time and its quantities, NaN for None."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, str], int] = {}
        self._parts: list[Values] = [np.empty((0, 2 + len(QUANTITIES)))]

    def add(self, samples: Sequence[SampleLine]) -> None:
        """The next ones; those of too many devices are left out."""
        numbers = np.array([self._number(each.source, each.device) for each in samples])
        part = np.column_stack([numbers, np.array(list(map(_COLUMNS, samples)), dtype=np.float64)])
        self._parts.append(part[numbers < MOST_DEVICES])

    def _number(self, source: str, device: str) -> int:
        if len(self._numbers) < MOST_DEVICES:
            return self._numbers.setdefault((source, device), len(self._numbers))
        return self._numbers.get((source, device), MOST_DEVICES)

    def devices(self, sources: Mapping[str, SourceInfo]) -> Iterator[tuple[tuple[str, str], DeviceSamples]]:
        """In the order of the names, 2 before 10."""
        rows = np.concatenate(self._parts)
        rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
        ends = np.searchsorted(rows[:, 0], np.arange(len(self._numbers)), side="right")
        for key in sorted(self._numbers, key=lambda key: (key[0], len(key[1]), key[1])):
            number = self._numbers[key]
            times, *values = rows[ends[number - 1] if number else 0 : ends[number], 1:].T
            columns = {each.name: of * each.factor for each, of in zip(QUANTITIES, values, strict=True)}
            # power below 0 is a tool's way to say that it has none
            columns["Power"] = np.where(columns["Power"] < 0, np.nan, columns["Power"])
            info = sources.get(key[0])
            yield (
                key,
                DeviceSamples(
                    info.scope if info else None,
                    info.interval_s if info else DEFAULT_INTERVAL_S,
                    times,
                    columns,
                ),
            )
