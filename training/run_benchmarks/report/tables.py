"""What a report shows beside charts: where the time went, who is slow or hot, what the hosts are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from statistics import median

from run_benchmarks.reading import flattened
from run_benchmarks.report.round_charts import SCOPES, Device, RoundTime, extent_in, kinds
from run_benchmarks.results.folder import as_list, section
from run_benchmarks.results.round_result import RoundResult
from run_benchmarks.results.stragglers import PARTS, rank_times
from utils.numbers import number_in, shown
from utils.text_files import shortened

SHADES = 6
SAME = 0.05  # values that differ by less than this part of them do not get all shades
MOST_COLUMNS = 64
MOST_FIELDS = 2_000
LONGEST_TEXT, LONGEST_DIFFERENCE = 300, 4_000  # characters of a value; of one in which hosts differ
# Of what heats or fills, the worst stands for the readings while training; of all else their mean.
WORST = ("memory_used_mib", "swap_used_mib", "temperature_c", "memory_temperature_c")


@dataclass(frozen=True)
class Part:
    """A part of a bar: its share of it and where it begins, in percent."""

    label: str
    seconds: float
    start: float
    share: float


def bar(seconds: Mapping[str, float]) -> list[Part]:
    """A bar whose parts lie side by side."""
    parts = {label: value for label, value in seconds.items() if value > 0}
    percent = 100 / sum(parts.values()) if parts else 0.0
    starts = accumulate(parts.values(), initial=0.0)
    return [
        Part(label, value, round(start * percent, 4), round(value * percent, 4))
        for (label, value), start in zip(parts.items(), starts, strict=False)
    ]


def time_in_script(result: RoundResult) -> dict[str, float]:
    """Where the time of the training script went, by what FINISHED tells; empty where it does not."""
    names = ("init_time", "pure_compute_time", "no_eval_time", "raw_train_time", "eval_time", "e2e_time")
    init, compute, no_eval, train, evaluation, whole = (number_in(result.facts, name) for name in names)
    if init is None or compute is None or no_eval is None or train is None or whole is None:
        return {}
    evaluation = evaluation or 0.0
    return {
        "start, model and data": init,
        "training steps": compute,
        "waiting for data": no_eval - compute,
        "evaluation": evaluation,
        "saving checkpoints": train - no_eval - evaluation,
        "imports and the rest": whole - init - train,
    }


@dataclass(frozen=True)
class Cell:
    """A value as it is shown, and how dark, from 0 to SHADES - 1."""

    text: str
    shade: int


@dataclass(frozen=True)
class HeatMap:
    """Nodes by what runs on them. ends: the least and the greatest, and where they are."""

    title: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Cell | None]]]
    ends: str


def heat_maps(devices: Sequence[Device], time: RoundTime | None, result: RoundResult) -> Iterator[HeatMap]:
    """A map a quantity and source, and those of ranks, each where there is more than one value."""
    if time:
        yield from _device_maps(devices, time)
    yield from _rank_rates(result)
    yield from _rank_times(result)


def _device_maps(devices: Sequence[Device], time: RoundTime) -> Iterator[HeatMap]:
    for quantity, scope, of_kind in kinds(devices):
        which = "greatest" if quantity.name in WORST else "mean"
        sources = dict.fromkeys(each.source for each in of_kind)
        for source in sources:
            named = f" ({source})" if len(sources) > 1 else ""  # a host's processors and its memory
            title = f"{quantity.title}, {SCOPES[scope]}{named}: {which} while training"
            extents = {
                (each.host, each.label): extent_in(each, quantity, time, *time.training)
                for each in of_kind
                if each.source == source
            }
            values = {key: getattr(extent, which) for key, extent in extents.items() if extent}
            yield from _map(title, quantity.unit, values)


def _rank_rates(result: RoundResult) -> Iterator[HeatMap]:
    """Of a case that measures: the median rate of each rank."""
    operations = section(result.facts, "operations")
    for name in operations:
        operation = section(operations, name)
        rates = [_median_rate(rank) for rank in as_list(operation.get("ranks"))]
        unit = str(operation.get("unit") or "")
        yield from _map(f"{name}: median rate of a rank", unit, _by_place(rates, result))


def _rank_times(result: RoundResult) -> Iterator[HeatMap]:
    """Of a case that trains: what each rank does by itself of a step, and of all of it the parts."""
    times = rank_times(result.facts)
    if times:
        columns: dict[str, Sequence[float]] = {"A rank's own part of a step": times.whole}
        columns |= {f"of it, {what}": times.parts[part] for part, what in PARTS.items()}
        for title, seconds in columns.items():
            yield from _map(title, "ms", _by_place([1000 * each for each in seconds], result))


def _by_place(values: Sequence[float | None], result: RoundResult) -> dict[tuple[str, str], float]:
    """What there is of each rank, by its host and its place there."""
    nproc = -(-len(values) // max(1, len(result.hosts)))
    return {
        (result.hosts[rank // nproc], f"rank {rank % nproc} of the node"): value
        for rank, value in enumerate(values)
        if value is not None and rank // nproc < len(result.hosts)
    }


def _median_rate(rank: object) -> float | None:
    rates = as_list(rank.get("rates")) if isinstance(rank, Mapping) else []
    each = [number_in({"rate": rate}, "rate") for rate in rates]
    numbers = [rate for rate in each if rate is not None]
    return median(numbers) if numbers else None


def _map(title: str, unit: str, values: Mapping[tuple[str, str], float]) -> Iterator[HeatMap]:
    if len(values) < 2:
        return
    columns = list(dict.fromkeys(label for _, label in values))[:MOST_COLUMNS]
    least, greatest = min(values, key=lambda key: values[key]), max(values, key=lambda key: values[key])
    low = values[least]
    scale = max(values[greatest] - low, SAME * abs(values[greatest]))

    def cell(value: float | None) -> Cell | None:
        if value is None:
            return None
        shade = int((value - low) / scale * (SHADES - 1) + 0.5) if scale > 0 else 0
        return Cell(shown(value), shade)

    hosts = dict.fromkeys(host for host, _ in values)
    rows = [(host, [cell(values.get((host, label))) for label in columns]) for host in hosts]
    ends = (
        f"Least: {shown(low)} {unit} on {least[0]}, {least[1]}. "
        f"Greatest: {shown(values[greatest])} {unit} on {greatest[0]}, {greatest[1]}."
    )
    yield HeatMap(f"{title} ({unit})" if unit else title, columns, rows, ends)


@dataclass(frozen=True)
class FieldOfHosts:
    """A field of the inventory: each value with the hosts that have it; more than one is a difference."""

    name: str
    values: Sequence[tuple[str, str]]

    @property
    def differs(self) -> bool:
        return len(self.values) > 1


def inventory(hosts: Sequence[str], inventories: object) -> list[FieldOfHosts]:
    """What the hosts are, field by field. inventories: plain data by node rank, None of a host that has none."""
    if not isinstance(inventories, (list, tuple)):
        return []
    flat = {
        host: dict(flattened(each, is_numbered=True))
        for host, each in zip(hosts, inventories, strict=False)
        if each
    }
    names = list(dict.fromkeys(name for fields in flat.values() for name in fields))[:MOST_FIELDS]
    return [FieldOfHosts(name, _values(name, flat)) for name in names]


def _values(name: str, flat: Mapping[str, Mapping[str, str]]) -> list[tuple[str, str]]:
    owners: dict[str, list[str]] = {}
    for host, fields in flat.items():
        owners.setdefault(fields.get(name, "none"), []).append(host)
    longest = LONGEST_TEXT if len(owners) == 1 else LONGEST_DIFFERENCE
    return [(shortened(text, longest), ", ".join(of_value)) for text, of_value in owners.items()]


def flat_fields(record: object) -> list[tuple[str, str]]:
    """Plain data of any depth as names and texts."""
    fields = islice(flattened(record, is_numbered=True), MOST_FIELDS)
    return [(name, shortened(text, LONGEST_TEXT)) for name, text in fields]
