"""A round's telemetry as columns: of each device of each node the times and values of its samples."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import accumulate, islice, repeat
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from run_benchmarks.names import meter_file_of
from run_benchmarks.results.clocks import NodeClock, Placement, placements
from run_benchmarks.results.telemetry_file import TelemetryReader
from utils.errors import FlagPerfError
from utils.telemetry.lines import TELEMETRY_FILE
from utils.telemetry.plausible import PLAUSIBLE_W, POWERS
from utils.telemetry.power_sources import DEFAULT_INTERVAL_S
from utils.telemetry.quantities import QUANTITIES, Quantity
from utils.telemetry.records import Scope, SourceInfo
from utils.telemetry.series import ENERGY_RANGE, MOST_VALUES, Series, SeriesTable

Values = NDArray[np.float64]
MOST_DEVICES = 256  # of a node: who names more is not shown with them
MOST_BYTES = 4 * 2**30  # of the files of a round that are read
PARALLEL_BYTES = 32 * 2**20  # less than that is read sooner than another process starts


# What is drawn: the course of a counter is that of its rate, which for energy is the power.
DRAWN = tuple(
    each for each in QUANTITIES if not each.is_counter and each.name not in (ENERGY_RANGE, "memory_total_mib")
)


@dataclass
class DeviceSamples:
    """The samples of one device, in order of time: ms since the epoch, and by its name a column of each quantity that
    was read, in the unit that people are shown, NaN where it was not."""

    scope: Scope | None  # None where the monitor never spoke of its source
    interval_s: float
    times: Values
    columns: Mapping[str, Values]


@dataclass
class NodeSamples:
    """A node's, by source and device. doubt: what could not be read of it."""

    devices: dict[tuple[str, str], DeviceSamples] = field(default_factory=dict)
    doubt: str = ""


def read_samples(folders: Sequence[Path], clocks: Sequence[NodeClock] = ()) -> list[NodeSamples]:
    """The samples in node folders, on one time line; of a node without any, none.

    All of them are held at once: of MOST_VALUES each node has an equal share, and what is behind that is left out.
    Files of a day are read by several processes at once.
    """
    paths = [folder / TELEMETRY_FILE for folder in folders]
    sizes = [_size(path) + _size(meter_file_of(path.parent)) for path in paths]
    places = placements(clocks, len(paths))
    totals = accumulate(sizes)
    wanted = [path if total <= MOST_BYTES else None for path, total in zip(paths, totals, strict=True)]
    filled = sum(size > 0 for size in sizes)
    share = repeat(MOST_VALUES // max(1, filled))
    workers = min(len(os.sched_getaffinity(0)), filled)
    if min(sum(sizes), MOST_BYTES) < PARALLEL_BYTES or workers < 2:
        return list(map(_read, wanted, places, share))
    with ProcessPoolExecutor(workers, get_context("forkserver")) as pool:
        return list(pool.map(_read, wanted, places, share))


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _read(path: Path | None, placement: Placement, most: int) -> NodeSamples:
    if path is None:
        return NodeSamples(doubt=f"is not read: the round's files hold more than {MOST_BYTES} bytes")
    if not (path.exists() or meter_file_of(path.parent).exists()):
        return NodeSamples()
    reader, table, doubt = (
        TelemetryReader(path, placement=placement),
        SeriesTable([each.name for each in DRAWN], most),
        "",
    )
    try:
        for tick in reader.ticks():
            table.take(tick)
    except FlagPerfError as error:
        doubt = str(error)
    if table.is_full:
        doubt = f"{path} has more than {most} values that could be drawn: the rest is left out"
    every = (
        ((source, device), _device(series, reader.sources.get(source)))
        for source, devices in sorted(table.by_source().items())
        for device, series in devices.items()
    )
    return NodeSamples(dict(islice(every, MOST_DEVICES)), doubt or reader.telemetry().doubt)


def _device(series: Series, info: SourceInfo | None) -> DeviceSamples:
    columns = {}
    for each in DRAWN:
        if each.name in series.columns:
            values = np.frombuffer(series.columns[each.name]) * each.factor
            least, most = _bounds(each, info)
            columns[each.name] = np.where((values >= least) & (values <= most), values, np.nan)
    interval_s = info.interval_s if info else DEFAULT_INTERVAL_S
    times = np.frombuffer(series.times_ms, dtype=np.int64).astype(np.float64)
    return DeviceSamples(info.scope if info else None, interval_s, times, columns)


def _bounds(quantity: Quantity, info: SourceInfo | None) -> tuple[float, float]:
    """Between which a reading is one; a value below 0 is a tool's way to say that it has none."""
    if info and info.scope in PLAUSIBLE_W and quantity.name in POWERS:
        return PLAUSIBLE_W[info.scope]
    return (-np.inf if quantity.may_be_negative else 0.0), np.inf
