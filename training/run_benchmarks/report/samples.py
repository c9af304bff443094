"""A round's telemetry as columns: of each device of each node the times and values of its samples."""

from __future__ import annotations

import gc
import os
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
    workers = min(len(os.sched_getaffinity(0)), sum(size > 0 for size in sizes))
    if min(total, MOST_BYTES) < PARALLEL_BYTES or workers < 2:
        return list(map(_read, wanted))
    with ProcessPoolExecutor(workers, get_context("forkserver"), gc.disable) as pool:  # there are no circles
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
    """Samples as they come in, as columns."""

    def __init__(self) -> None:
        self._codes: dict[tuple[str, str], int] = {}
        self._parts: list[tuple[NDArray[np.int64], Values, list[Values]]] = []

    def add(self, samples: Sequence[Sample]) -> None:
        """The next ones; None becomes NaN."""
        codes = [self._code((sample.source, sample.device)) for sample in samples]
        times = [sample.time_ms for sample in samples]
        values = [[getattr(sample, each.field) for sample in samples] for each in QUANTITIES]
        columns = [np.array(column, dtype=np.float64) for column in values]
        self._parts.append((np.array(codes, dtype=np.int64), np.array(times, dtype=np.float64), columns))

    def _code(self, key: tuple[str, str]) -> int:
        """The number of a device; that of those that are too many is MOST_DEVICES."""
        code = self._codes.get(key)
        if code is None:
            code = len(self._codes)
            if code < MOST_DEVICES:
                self._codes[key] = code
        return code

    def devices(self, scopes: Mapping[str, Scope]) -> Iterator[tuple[tuple[str, str], DeviceSamples]]:
        """In the order of the names, 2 before 10."""
        if not self._parts:
            return
        codes, times = (np.concatenate([part[index] for part in self._parts]) for index in (0, 1))
        columns = [np.concatenate(parts) for parts in zip(*(part[2] for part in self._parts), strict=True)]
        order = np.lexsort((times, codes))
        ends = np.searchsorted(codes[order], np.arange(len(self._codes)), side="right")
        for key in sorted(self._codes, key=lambda key: (key[0], len(key[1]), key[1])):
            code = self._codes[key]
            own = order[ends[code - 1] if code else 0 : ends[code]]
            pairs = zip(QUANTITIES, columns, strict=True)
            of_key = {each.name: column[own] * each.factor for each, column in pairs}
            # power below 0 is a tool's way to say that it has none
            of_key["Power"] = np.where(of_key["Power"] < 0, np.nan, of_key["Power"])
            yield key, DeviceSamples(scopes.get(key[0]), times[own], of_key)
