"""What a form of telemetry costs at 64 devices and 10 Hz: bytes, and processor time to write and to read an hour.

    .venv/bin/python benches/telemetry_format.py [--seconds 30]

Beside JSON with a line a tick (what `telemetry.jsonl` is) and a line a device (what it was) stands Parquet, by pyarrow
where that is installed (`pip install pyarrow`), with a row group a second, so that no more is lost by a kill, and with
one in 30 s.
"""

from __future__ import annotations

import argparse
import io
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "training"))

from run_benchmarks.results.table import aligned  # noqa: E402
from run_benchmarks.results.telemetry_file import TelemetryReader  # noqa: E402
from utils.telemetry.lines import record_line  # noqa: E402
from utils.telemetry.quantities import QUANTITIES  # noqa: E402
from utils.telemetry.records import Scope, SourceInfo, Tick  # noqa: E402

DEVICES, HZ, HOUR_S, MIB = 64, 10, 3600, 2**20
SOURCE = SourceInfo(0, "nvidia", Scope.ACCELERATOR, 1 / HZ)
Form = tuple[str, bytes, float, float]


def made(seconds: int) -> list[Tick]:
    """Devices with every quantity: counters that grow, gauges that move."""
    draw = random.Random(1)
    names = [str(device) for device in range(DEVICES)]
    counters = {each.name: [draw.randrange(10**9) for _ in names] for each in QUANTITIES if each.is_counter}
    ticks = []
    for number in range(seconds * HZ):
        readings: dict[str, Sequence[float | None]] = {}
        for each in QUANTITIES:
            if each.is_counter:
                counters[each.name] = [value + draw.randrange(40_000) for value in counters[each.name]]
                readings[each.name] = counters[each.name]
            else:
                readings[each.name] = [round(draw.uniform(200, 400), each.decimals) for _ in names]
        ticks.append(Tick(number * 1000 // HZ, "nvidia", names, readings, monotonic_ms=number * 1000 // HZ))
    return ticks


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What it returns, and the processor time that it took, s."""
    begin = time.process_time()
    return work(), time.process_time() - begin


def json_forms(ticks: Sequence[Tick]) -> Iterator[Form]:
    """A line a device, and a line a tick."""
    single = [
        Tick(
            tick.time_ms, tick.source, [name], {key: [values[place]] for key, values in tick.readings.items()}
        )
        for tick in ticks
        for place, name in enumerate(tick.devices)
    ]
    for form, records in (("JSON, a line a device", single), ("JSON, a line a tick", ticks)):
        text, writing = timed(lambda records=records: "".join(map(record_line, records)))
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            file.write(record_line(SOURCE) + text)
            file.flush()
            reader = TelemetryReader(Path(file.name))
            count, reading = timed(lambda reader=reader: sum(1 for _ in reader.ticks()))
        if count != len(records):
            sys.exit(f"{form}: {count} of {len(records)} records were read")
        yield form, text.encode(), writing, reading


def parquet_forms(ticks: Sequence[Tick]) -> Iterator[Form]:
    """Row groups of a second and of 30 s."""
    import pyarrow
    from pyarrow import parquet

    fields = [("time_ms", pyarrow.int64()), ("device", pyarrow.string())]
    schema = pyarrow.schema([*fields, *((each.name, pyarrow.float64()) for each in QUANTITIES)])

    def written(rows: int) -> bytes:
        buffer = io.BytesIO()
        with parquet.ParquetWriter(buffer, schema, compression="zstd") as writer:
            for begin in range(0, len(ticks), rows):
                group = ticks[begin : begin + rows]
                columns = {
                    each.name: list(chain.from_iterable(tick.readings[each.name] for tick in group))
                    for each in QUANTITIES
                }
                columns["time_ms"] = [tick.time_ms for tick in group for _ in tick.devices]
                columns["device"] = [name for tick in group for name in tick.devices]
                writer.write_table(pyarrow.table(columns, schema=schema))
        return buffer.getvalue()

    for seconds in (1, 30):
        data, writing = timed(lambda rows=seconds * HZ: written(rows))
        _, reading = timed(lambda data=data: parquet.read_table(io.BytesIO(data)))
        yield f"Parquet, a row group in {seconds} s", data, writing, reading


def main() -> None:
    """Print the table, with the ratio to a line a tick."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=int, default=30, help="of sampling (default: 30)")
    seconds = parser.parse_args().seconds
    ticks = made(seconds)
    forms = list(json_forms(ticks))
    try:
        forms += parquet_forms(ticks)
    except ImportError:
        print("pyarrow is not installed: Parquet is left out")
    own, hour = forms[1], HOUR_S / seconds
    rows = [["form", "MiB/h", "ratio", "writing, CPU s/h", "ratio", "reading, CPU s/h", "ratio"]]
    for form, data, writing, reading in forms:
        row = [form, f"{len(data) * hour / MIB:.0f}", f"{len(data) / len(own[1]):.2f}"]
        row += [
            f"{writing * hour:.1f}",
            f"{writing / own[2]:.2f}",
            f"{reading * hour:.1f}",
            f"{reading / own[3]:.2f}",
        ]
        rows.append(row)
    print(f"{DEVICES} devices, {HZ} Hz, {len(QUANTITIES)} quantities")
    print(aligned(rows))


if __name__ == "__main__":
    main()
