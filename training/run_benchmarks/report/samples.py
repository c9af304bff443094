"""A round's telemetry as columns: of each device of each node the times and values of its samples."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from run_benchmarks.results.telemetry_file import TelemetryReader
from utils.errors import FlagPerfError
from utils.telemetry.lines import TELEMETRY_FILE
from utils.telemetry.records import Sample, Scope

Values = NDArray[np.float64]
GIB_IN_MIB = 1024
MOST_DEVICES = 256  # of a node: who names more is not shown with them
MOST_BYTES = 4 * 2**30  # of the files of a round that are read
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


@dataclass
class DeviceSamples:
    """The samples of one device, in order of time: ms since the epoch, and a column a quantity, NaN where not read."""

    scope: Scope | None
    times: Values
    columns: Mapping[str, Values]


@dataclass
class NodeSamples:
    """A node's, by source and device. intervals: of its sources, in s. doubt: what could not be read of it."""

    devices: dict[tuple[str, str], DeviceSamples] = field(default_factory=dict)
    intervals: dict[str, float] = field(default_factory=dict)
    doubt: str = ""


def read_samples(folders: Sequence[Path]) -> list[NodeSamples]:
    """The samples in node folders; of a node without any, none.

    Files of a day are read by several processes at once.
    """
    paths = [folder / TELEMETRY_FILE for folder in folders]
    sizes = [path.stat().st_size if path.is_file() else 0 for path in paths]
    total, wanted = 0, []
    for path, size in zip(paths, sizes, strict=True):
        total += size
        wanted.append(path if total <= MOST_BYTES else None)
    workers = min(os.cpu_count() or 1, sum(size > 0 for size in sizes))
    if min(total, MOST_BYTES) < PARALLEL_BYTES or workers < 2:
        return list(map(_read, wanted))
    with ProcessPoolExecutor(workers, mp_context=get_context("forkserver")) as pool:
        return list(pool.map(_read, wanted))


def _read(path: Path | None) -> NodeSamples:
    if path is None:
        return NodeSamples(doubt=f"is not read: the round's files hold more than {MOST_BYTES} bytes")
    if not path.exists():
        return NodeSamples()
    reader, columns = TelemetryReader(path), _Columns()
    try:
        for batch in reader.batches():
            columns.add(batch)
        doubt = reader.telemetry().doubt
    except FlagPerfError as error:
        doubt = str(error)
    intervals = {name: info.interval_s for name, info in reader.sources.items()}
    scopes = {name: info.scope for name, info in reader.sources.items()}
    return NodeSamples(dict(columns.devices(scopes)), intervals, doubt)


class _Columns:
    """Samples as they come in, by device."""

    def __init__(self) -> None:
        self._columns: dict[tuple[str, str], list[array[float]]] = {}

    def add(self, samples: Sequence[Sample]) -> None:
        for sample in samples:
            key = sample.source, sample.device
            columns = self._columns.get(key)
            if columns is None:
                if len(self._columns) >= MOST_DEVICES:
                    continue
                columns = self._columns[key] = [array("d") for _ in range(5)]
            columns[0].append(sample.time_ms)
            columns[1].append(NAN if sample.power_w is None else sample.power_w)
            columns[2].append(NAN if sample.utilisation is None else sample.utilisation)
            columns[3].append(NAN if sample.memory_used_mib is None else sample.memory_used_mib)
            columns[4].append(NAN if sample.temperature_c is None else sample.temperature_c)

    def devices(self, scopes: Mapping[str, Scope]) -> Iterator[tuple[tuple[str, str], DeviceSamples]]:
        """In the order of the names, 2 before 10."""
        for key in sorted(self._columns, key=lambda key: (key[0], len(key[1]), key[1])):
            times, *values = (np.frombuffer(column) for column in self._columns[key])
            order = np.argsort(times, kind="stable")
            pairs = zip(QUANTITIES, values, strict=True)
            columns = {each.name: column[order] * each.factor for each, column in pairs}
            if "Power" in columns:  # one below 0 is a tool's way to say that it has none
                columns["Power"] = np.where(columns["Power"] < 0, np.nan, columns["Power"])
            yield key, DeviceSamples(scopes.get(key[0]), times[order], columns)


NAN = float("nan")
