"""Power and energy of a round, computed again from its telemetry as docs/results.md says it: see recomputation.py."""

from __future__ import annotations

import itertools
import json
import math
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.audit.clocks import Clock, on_the_time_line

SCOPES = ("machine", "accelerator", "cpu package")
LEAST_COVERAGE, LEAST_COVERAGE_FOR_SAMPLES = 0.5, 0.99
INTERVALS_OF_A_HOLE, LEAST_HOLE_MS = 2.5, 5_000.0
MOST_LEAPS, MOST_OF_GROWTHS, NEARLY = 3, 0.05, 0.99
MOST_W = {"machine": 1e6, "shared chassis": 1e6, "accelerator": 30_000.0, "cpu package": 2_000.0}
LATE_MS = 1000.0
WHOLE = 0.99
LONGEST_STANDSTILL_MS = 5_000.0
LEAST_IDLE_MS = 2_000.0
LONGEST_TEXT = 4_000
LONGEST_NAME = 100

READ = {
    "utilisation": "utilisation",
    "max_device_memory": "memory_used_mib",
    "avg_temperature": "temperature_c",
    "max_temperature": "temperature_c",
    "throttled": "throttle",
}
KEYS = {
    "source": {"time_ms": "whole", "interval_s": "number"}
    | dict.fromkeys(("source", "scope", "note", "reason"), "text"),
    "sample": {"time_ms": "whole"}
    | dict.fromkeys(("source", "device", "error"), "text")
    | dict.fromkeys(("utilisation", "power_w", "energy_mj", "energy_range_mj"), "reading")
    | dict.fromkeys(("memory_used_mib", "memory_total_mib", "temperature_c"), "reading")
    | {"power_on": "name"},
}
KEYS["tick"] = {"time_ms": "whole", "monotonic_ms": "whole", "source": "text", "devices": "texts"}
KEYS["tick"] |= {"readings": "columns"} | dict.fromkeys(("power_on", "throttle", "error"), "names")
REQUIRED = {
    "source": {"time_ms", "source", "scope", "interval_s"},
    "sample": {"time_ms", "source"},
    "tick": {"time_ms", "source", "devices", "readings"},
}

Value = float | None
Window = tuple[float, float]


@dataclass
class Node:
    """What one node comes to: W and J, and the parts of the window they were measured in."""

    scope: str
    energy: Value = None
    avg_power: Value = None
    max_power: Value = None
    idle_power: Value = None
    energy_above_idle: Value = None
    energy_to_target: Value = None
    coverage: float = 0.0
    max_coverage: float = 0.0
    idle_coverage: float = 0.0
    target_coverage: float = 0.0


@dataclass
class Device:
    """Its readings, by time."""

    power: list[tuple[float, float]] = field(default_factory=list)
    counter: list[tuple[float, float]] = field(default_factory=list)
    range_mj: Value = None
    power_on: str | None = None
    most_w: float = math.inf
    is_package: bool = False

    @property
    def is_read(self) -> bool:
        return bool(self.power or self.counter)


@dataclass
class Pair:
    """Two neighbouring readings, and the part of their time that lies in the window."""

    left: tuple[float, float]
    right: tuple[float, float]
    begin: float
    end: float

    @property
    def length(self) -> float:
        return self.right[0] - self.left[0]

    @property
    def whole(self) -> bool:
        return self.begin == self.left[0] and self.end == self.right[0]

    def at(self, time: float) -> float:
        """The value between the readings, linear in time."""
        return self.left[1] + (self.right[1] - self.left[1]) * (time - self.left[0]) / self.length


def number(value: object) -> Value:
    """A finite JSON number; None is "not reported"."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) <= sys.float_info.max else None


def figures(
    folder: Path,
    hosts: list[str],
    window: Window | None,
    samples: Value,
    met: Value = None,
    ranks_start: dict[int, Value] | None = None,
    clocks: Sequence[Clock] = (),
) -> dict[str, Value]:
    """The round's figures of power. met: when an evaluation met the target. ranks_start: node -> of its first rank.

    clocks: of round.json.
    """
    if window is None:
        return {}
    starts = ranks_start or {}
    nodes = [
        node_of(folder / f"{host}_noderank{rank}", rank, window, met, starts.get(rank), list(clocks))
        for rank, host in enumerate(hosts)
    ]
    present = [node for node in nodes if node is not None]
    if len(present) < len(nodes) or len({node.scope for node in present}) != 1:
        return {}
    least = min(node.coverage for node in present)
    own = {
        "energy": mean([node.energy for node in present], least),
        "avg_power": mean([node.avg_power for node in present], least),
        "max_power": mean([node.max_power for node in present], min(node.max_coverage for node in present)),
        "idle_power": mean(
            [node.idle_power for node in present], min(node.idle_coverage for node in present)
        ),
        "energy_above_idle": mean([node.energy_above_idle for node in present], least),
        "energy_to_target": mean(
            [node.energy_to_target for node in present], min(node.target_coverage for node in present)
        ),
    }
    energy = own["energy"]
    if energy and energy > 0 and samples is not None and least >= LEAST_COVERAGE_FOR_SAMPLES:
        own["samples_per_joule"] = samples / (energy * len(nodes))
    return own


def mean(values: list[Value], coverage: float) -> Value:
    """Null where a node has none, or too little of the window was sampled."""
    given = [value for value in values if value is not None]
    if len(given) < len(values) or coverage < LEAST_COVERAGE:
        return None
    return math.fsum(given) / len(values)


def node_of(
    folder: Path, rank: int, window: Window, met: Value, ranks_start: Value, clocks: list[Clock]
) -> Node | None:
    """One node by the source that is nearest to the whole machine; None where there is none."""
    records = telemetry(folder, rank, clocks)
    if records is None:
        return None
    if ranks_start is not None:
        ranks_start = on_the_time_line(ranks_start, rank, clocks)
    sources = {record["source"]: record for record in records if record["kind"] == "source"}
    working = [
        source
        for source in sources.values()
        if not source.get("reason")
        and source.get("scope") in SCOPES
        and any(device.is_read for device in devices_of(records, source["source"], source["scope"]))
    ]
    if not working:
        return None
    metered = {record["source"] for record in records if record.get("of_meter")}
    source = min(
        working,
        key=lambda each: (
            SCOPES.index(each["scope"]),
            each["source"] not in metered,
            each["interval_s"],
            each["source"],
        ),
    )
    interval = source["interval_s"] * 1000
    devices = devices_of(records, source["source"], source["scope"])
    node = Node(source["scope"])
    node.max_power, node.max_coverage = largest(devices, window, interval)
    node.energy, node.avg_power, node.coverage = energy_and_power(devices, window, interval)
    if met is not None and met > window[0]:
        node.energy_to_target, _, node.target_coverage = energy_and_power(devices, (window[0], met), interval)
    ticks = [
        each["time_ms"] for each in records if each["kind"] != "source" and each["source"] == source["source"]
    ]
    if ranks_start is not None and ticks and ranks_start - min(ticks) >= LEAST_IDLE_MS:
        idle = (min(ticks), ranks_start)
        _, node.idle_power, node.idle_coverage = energy_and_power(devices, idle, interval)
    if (
        node.idle_power is not None
        and node.idle_coverage >= LEAST_COVERAGE
        and node.energy
        and node.avg_power
    ):
        idle_joules = node.idle_power * node.energy / node.avg_power
        is_rounding = abs(node.energy - idle_joules) <= 1e-9 * max(node.energy, idle_joules)
        node.energy_above_idle = 0.0 if is_rounding else node.energy - idle_joules
    return node


def energy_and_power(devices: list[Device], window: Window, interval: float) -> tuple[Value, Value, float]:
    """J, W and the part of the window that was covered, of all devices together."""
    measured = [energy_of(device, window, interval) for device in devices]
    if not measured or not all(covered > 0 for _, covered in measured):
        return None, None, 0.0
    energy = math.fsum(energy for energy, _ in measured)
    power = math.fsum(energy / (covered / 1000) for energy, covered in measured)
    return energy, power, min(covered for _, covered in measured) / (window[1] - window[0])


def of_accelerators(
    folder: Path, hosts: list[str], window: Window | None, clocks: Sequence[Clock] = ()
) -> dict[str, Value]:
    """The round's figures of what accelerators say of themselves."""
    if window is None:
        return {}
    own: dict[str, Value] = {}
    for name in READ:
        nodes = [
            of_node(telemetry(folder / f"{host}_noderank{rank}", rank, list(clocks)) or [], window, name)
            for rank, host in enumerate(hosts)
        ]
        there = [node for node in nodes if node is not None]
        if there and len(there) == len(nodes) and min(covered for _, covered in there) >= LEAST_COVERAGE:
            own[name] = of_several(name, [value for value, _ in there])
    return own


def of_node(records: list[dict[str, Any]], window: Window, figure: str) -> tuple[float, float] | None:
    """The value, and its coverage, of the first source that has any."""
    sources = {record["source"]: record for record in records if record["kind"] == "source"}
    for name, source in sorted(sources.items()):
        if source.get("reason") or source.get("scope") != "accelerator":
            continue
        readings: dict[str, list[float]] = defaultdict(list)
        for record in records:
            if (
                record["source"] == name
                and record["kind"] != "source"
                and window[0] <= record["time_ms"] <= window[1]
            ):
                for each in samples_of(record):
                    readings[each.get("device", "")] += reading_of(figure, each)
        read = [values for values in readings.values() if values]
        if read:
            intervals = (window[1] - window[0]) / (source["interval_s"] * 1000)
            expected = max(1, math.floor(intervals - 0.5))
            covered = min(min(1.0, len(values) / expected) for values in read)
            return of_several(figure, [of_several(figure, values) for values in read]), covered
    return None


def reading_of(figure: str, sample: dict[str, Any]) -> list[float]:
    """What a sample tells of a figure, or nothing."""
    value = sample.get(READ[figure])
    if figure == "throttled":
        return [] if value is None else [float(bool(value.strip()))]
    if value is None or (value < 0 and "temperature" not in figure):
        return []
    return [value / 1024 if figure == "max_device_memory" else value]


def of_several(figure: str, values: list[float]) -> float:
    return max(values) if figure.startswith("max") else math.fsum(values) / len(values)


def telemetry(folder: Path, rank: int, clocks: list[Clock]) -> list[dict[str, Any]] | None:
    """A node's meters and its own records, on one time line; of its own none where more than one in a hundred lines is
    none. None where there is nothing."""
    meters, _ = lines_of(folder.with_name(f"{folder.name}.meters.jsonl"), None, clocks)
    own, of_own = lines_of(folder / "telemetry.jsonl", rank, clocks)
    taken = {record["source"] for record in meters if record["kind"] == "source"}
    for record in meters:
        record["of_meter"] = True
    own = [record for record in own if record["source"] not in taken]
    return (meters + own if of_own - len(own) <= of_own / 100 else meters) or None


def lines_of(path: Path, rank: int | None, clocks: list[Clock]) -> tuple[list[dict[str, Any]], int]:
    """The records of a file, by rank 0's clock, and how many lines it has: a last one without its end is none."""
    lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
    records = [record for record in map(parsed, lines) if is_record(record)]
    for record in records:
        if record["kind"] != "source":
            record["time_ms"] = on_the_time_line(record["time_ms"], rank, clocks)
    return records, len(lines)


def parsed(line: str) -> Any:
    """What a line holds; None for what is no JSON."""
    try:
        return json.loads(line)
    except ValueError:
        return None


def is_record(record: Any) -> bool:
    """Whether it has the keys that the page names, with values of their types, and no others."""
    keys = KEYS.get(str(record.get("kind"))) if isinstance(record, dict) else None
    if keys is None or not record.keys() <= {"kind", *keys} or not REQUIRED[record["kind"]] <= record.keys():
        return False
    values = [(keys[key], value) for key, value in record.items() if key != "kind"]
    if not all(is_of(kind, value) for kind, value in values):
        return False
    devices = record.get("devices")
    if devices is None:
        return True
    lists = [*record["readings"].values(), *(record.get(name) for name in ("power_on", "throttle", "error"))]
    is_even = all(each is None or len(each) == len(devices) for each in lists)
    return bool(devices) and len(set(devices)) == len(devices) and is_even


def is_of(kind: str, value: object) -> bool:
    if kind == "text":
        return isinstance(value, str) and len(value) <= LONGEST_TEXT
    if kind == "name":
        return value is None or is_of("text", value)
    if kind == "whole":
        return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 2**53
    if kind in ("texts", "names", "column"):
        one = {"texts": "text", "names": "name", "column": "reading"}[kind]
        return isinstance(value, list) and all(is_of(one, each) for each in value)
    if kind == "columns":
        return isinstance(value, dict) and all(
            len(name) <= LONGEST_NAME and is_of("column", each) for name, each in value.items()
        )
    return (kind == "reading" and value is None) or number(value) is not None


def devices_of(records: list[dict[str, Any]], source: str, scope: str) -> list[Device]:
    """The devices of one source that are not carried by another, with their readings in order of time."""
    devices: dict[str, Device] = defaultdict(Device)
    of_source = [each for each in records if each["kind"] != "source" and each["source"] == source]
    samples = [sample for each in of_source for sample in samples_of(each)]
    for sample in sorted(samples, key=lambda each: int(each["time_ms"])):
        device, time = devices[sample.get("device", "")], float(sample["time_ms"])
        power, counter = sample.get("power_w"), sample.get("energy_mj")
        device.most_w, device.is_package = MOST_W[scope], scope == "cpu package"
        least = 0.0 if scope == "cpu package" else 0.001
        device.power += [(time, power)] if power is not None and least <= power <= device.most_w else []
        device.counter += [] if counter is None or counter < 0 else [(time, counter)]
        device.range_mj = sample.get("energy_range_mj") or device.range_mj
        device.power_on = device.power_on if sample.get("power_on") is None else sample["power_on"]
    carrying = {name for name, device in devices.items() if device.is_read or device.power_on is None}
    return [device for device in devices.values() if device.is_read or device.power_on not in carrying]


def samples_of(record: dict[str, Any]) -> list[dict[str, Any]]:
    """A tick as a sample a device."""
    if record["kind"] == "sample":
        return [record]
    columns = {**record["readings"], **{name: record.get(name) for name in ("power_on", "throttle")}}
    return [
        {"time_ms": record["time_ms"], "device": device}
        | {name: values[place] for name, values in columns.items() if values is not None}
        for place, device in enumerate(record["devices"])
    ]


def pairs(readings: list[tuple[float, float]], window: Window) -> list[Pair]:
    """The neighbours that have a part in the window."""
    every = itertools.pairwise(readings)
    clipped = [Pair(left, right, max(left[0], window[0]), min(right[0], window[1])) for left, right in every]
    return [pair for pair in clipped if pair.end > pair.begin]


def energy_of(device: Device, window: Window, interval: float) -> tuple[float, float]:
    """Energy in J and the time in ms in which it was measured; 0 for nothing."""
    hole = furthest_apart(window, interval)
    if not device.counter:
        return by_power(device, window, hole)
    integrated = (0.0, 0.0) if device.is_package else by_power(device, window, hole)
    *counted, has_faults = by_counter(device, window, hole)
    if has_faults:
        return (counted[0], counted[1]) if counted[1] > integrated[1] else integrated
    is_enough = counted[1] >= NEARLY * (window[1] - window[0]) or counted[1] > NEARLY * integrated[1]
    return (counted[0], counted[1]) if is_enough else integrated


def furthest_apart(window: Window, interval: float) -> float:
    """How far apart two readings may be that tell of the window, in ms as the interval."""
    length = window[1] - window[0]
    late = min(LATE_MS, interval) if length >= 0.9 * interval else 0.0
    return min(max(LEAST_HOLE_MS, INTERVALS_OF_A_HOLE * interval), length + late)


def by_counter(device: Device, window: Window, hole: float) -> tuple[float, float, bool]:
    """J, ms, and whether something in the window, or leaps beside it, show that the counter is none."""
    counter = judged(device)
    energy = covered = 0.0
    grown = 0
    for left, right in counter.growths:
        part = Pair(left, right, max(left[0], window[0]), min(right[0], window[1]))
        grown += part.end > part.begin
        if part.end > part.begin and (part.whole or part.length <= hole):
            energy += (right[1] - left[1]) / 1000 * (part.end - part.begin) / part.length
            covered += part.end - part.begin
    around = (window[0] - hole, window[1] + hole)
    leaps = sum(touches(around, *leap) for leap in counter.leaps)
    if leaps > max(MOST_LEAPS, MOST_OF_GROWTHS * grown):
        return 0.0, 0.0, True
    return energy, covered, bool(leaps) or any(touches(window, *still) for still in counter.standstills)


@dataclass
class Judged:
    """A counter: from update to update, each with its time and what was counted by then; and when it was none."""

    growths: list[tuple[tuple[float, float], tuple[float, float]]] = field(default_factory=list)
    leaps: list[tuple[float, float]] = field(default_factory=list)
    standstills: list[tuple[float, float]] = field(default_factory=list)


def judged(device: Device) -> Judged:
    """A reading that shows what the one before showed is no update.

    Of the first one nobody knows, unless that and the next value were seen once.
    """
    counter = Judged()
    device.counter = list(dict(device.counter).items())  # of those of one time the last
    readings = well_read(device)
    steps = [growth_of(device, left, right) for left, right in itertools.pairwise(readings)]
    update: tuple[float, float] | None = None
    # what was counted, since when it shows this value, and whether one reading alone did so far
    counted, since, is_alone = 0.0, 0.0, False
    for number, reading in enumerate(readings):
        before, growth = (readings[number - 1], steps[number - 1]) if number else (None, None)
        if before is None or growth is None:
            if before is not None and not is_far(device, before, reading):
                counter.leaps.append((before[0], reading[0]))
            update, since, is_alone, counted = None, reading[0], True, 0.0
            continue
        if growth == 0:
            if reading[0] - since > LONGEST_STANDSTILL_MS:
                counter.standstills.append((since, reading[0]))
            is_alone = False
            continue
        if update is None and is_alone and steps[number : number + 1] != [0]:
            update = (before[0], counted)
        counted += growth
        if update and before[0] - since <= LONGEST_STANDSTILL_MS:
            counter.growths.append((update, (reading[0], counted)))
        update, since, is_alone = (reading[0], counted), reading[0], False
    return counter


def touches(window: Window, begin: float, end: float) -> bool:
    return begin < window[1] and end > window[0]


def is_far(device: Device, left: tuple[float, float], right: tuple[float, float]) -> bool:
    """Whether the counter may have wrapped twice between them."""
    return device.range_mj is not None and right[0] - left[0] > device.range_mj / device.most_w - LATE_MS


def growth_of(
    device: Device, left: tuple[float, float], right: tuple[float, float], may_wrap: bool = True
) -> float | None:
    """None for what is no growth."""
    growth = right[1] - left[1]
    if growth < 0 and device.range_mj and may_wrap:
        growth += device.range_mj
    can_be = 0 <= growth <= device.most_w * (right[0] - left[0] + LATE_MS)
    return growth if can_be and not is_far(device, left, right) else None


def well_read(device: Device) -> list[tuple[float, float]]:
    """Without each reading that a neighbour contradicts while the two on either side of it agree."""
    every = device.counter
    agree = [growth_of(device, left, right) is not None for left, right in itertools.pairwise(every)]
    kept = every[:1]
    for number in range(1, len(every)):
        beside = agree[number - 1 : number + 1]
        around = [*agree[max(0, number - 2) : number - 1], *agree[number + 1 : number + 2]]
        is_misread = (
            number + 1 < len(every)
            and not all(beside)
            and all(around)
            and growth_of(device, every[number - 1], every[number + 1], may_wrap=False) is not None
        )
        kept += [] if is_misread else [every[number]]
    return kept


def by_power(device: Device, window: Window, hole: float) -> tuple[float, float]:
    """The trapezoid rule."""
    counted = [pair for pair in pairs(device.power, window) if pair.length <= hole]
    energy = math.fsum(
        (pair.at(pair.begin) + pair.at(pair.end)) / 2 * (pair.end - pair.begin) / 1000 for pair in counted
    )
    return energy, math.fsum(pair.end - pair.begin for pair in counted)


def largest(devices: list[Device], window: Window, interval: float) -> tuple[Value, float]:
    """The largest sum over all devices of one time, and the part of the window such times cover."""
    by_time = [
        {
            right[0]: (right[1] - left[1]) / (right[0] - left[0])
            for left, right in judged(device).growths
            if right[1] - left[1] <= device.most_w * (right[0] - left[0])
        }
        if device.is_package and device.counter
        else dict(device.power)
        for device in devices
    ]
    if not by_time:
        return None, 0.0
    together = sorted(set.intersection(*(set(each) for each in by_time)))
    sums = [math.fsum(each[time] for each in by_time) for time in together if window[0] <= time <= window[1]]
    gaps = [
        pair
        for pair in pairs([(time, 0.0) for time in together], window)
        if pair.length <= furthest_apart(window, interval)
    ]
    covered = math.fsum(pair.end - pair.begin for pair in gaps)
    return max(sums, default=None), covered / (window[1] - window[0])
