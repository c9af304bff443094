"""Telemetry made up for the audit (no meter was read), in copies of a round that was really run.

A scenario is what the monitors of each node wrote. Times are milliseconds since the start of a window of 100 s, which
the copies' TRAIN_START is set back to make room for.
"""

from __future__ import annotations

import itertools
import json
import math
import random
import re
import shutil
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

WINDOW_MS = 100_000
RANGE_MJ = 65_536_000  # of a processor package of some kinds
Record = dict[str, Any]
Scenario = list[list[Record]]  # by node


def source(name: str, scope: str, interval_s: float = 1.0, **more: Any) -> Record:
    return {
        "kind": "source",
        "time_ms": -3000,
        "source": name,
        "scope": scope,
        "interval_s": interval_s,
        **more,
    }


def sample(name: str, time_ms: int, device: str = "0", **values: Any) -> Record:
    return {"kind": "sample", "time_ms": time_ms, "source": name, "device": device, **values}


def watts(time_ms: int, device: int = 0) -> float:
    """A load that rises and falls in steps."""
    return 100.0 + 37.5 * (time_ms // 3000 % 5) + 11.25 * device


def metered(times: Iterable[int], name: str = "pwr", scope: str = "machine") -> list[Record]:
    """A node with power alone."""
    return [source(name, scope), *(sample(name, time, power_w=watts(time)) for time in times)]


def counted(
    times: Iterable[int], rate: int, range_mj: int | None = RANGE_MJ, device: str = "0"
) -> list[Record]:
    """Samples of a processor package whose counter grows by `rate` mJ a millisecond and starts again at the range."""
    more = {} if range_mj is None else {"energy_range_mj": range_mj}
    values = {time: (rate * (time + 10_000)) % (range_mj or 10**15) for time in times}
    return [sample("rapl", time, device, energy_mj=value, **more) for time, value in values.items()]


def in_ticks(records: Iterable[Record]) -> list[Record]:
    """The samples that stand together and are of one source and time, as one tick."""
    ticks: list[Record] = []
    for key, group in groupby(records, lambda each: (each["kind"], each["source"], each["time_ms"])):
        samples = list(group)
        names = dict.fromkeys(name for sample in samples for name in sample)
        if key[0] != "sample" or "device" not in names or len({s["device"] for s in samples}) < len(samples):
            ticks += samples
            continue
        columns = {name: [sample.get(name) for sample in samples] for name in names}
        own = {name: columns.pop(name) for name in ("power_on", "throttle", "error") if name in columns}
        devices = columns.pop("device")
        readings = {name: v for name, v in columns.items() if name not in ("kind", "source", "time_ms")}
        ticks.append(
            {
                "kind": "tick",
                "time_ms": key[2],
                "source": key[1],
                "devices": devices,
                "readings": readings,
                **own,
            }
        )
    return ticks


def every(step: int = 1000, begin: int = -2000, end: int = WINDOW_MS + 2000) -> list[int]:
    return list(range(begin, end + 1, step))


def clock(ahead_s: float, more_s: float = 0.0) -> Record:
    """A node's clock, so far ahead of the controller's before the window, and by more behind it."""
    return {"kind": "clock", "ahead": [ahead_s, ahead_s + more_s]}


def of_meter(records: list[Record]) -> list[Record]:
    """Records that the controller wrote."""
    return [{**record, "of_meter": True} for record in records]


def bmc(times: Iterable[int], scope: str = "machine") -> list[Record]:
    """What the controller read, less often than the node's own meters."""
    return of_meter(
        [
            source("redfish", scope, 2.0),
            *(sample("redfish", time, "", power_w=2 * watts(time)) for time in times),
        ]
    )


def without(times: list[int], begin: int, end: int) -> list[int]:
    """A hole from `begin` to `end`, which are both sampled where they were."""
    return [time for time in times if not begin < time < end]


def accelerators(times: list[int], number: int = 4, **missing: list[int]) -> list[Record]:
    """A node with several devices; `missing`: device -> the times at which its power was not read."""
    records = [source("acme", "accelerator")]
    for time in times:
        for device in range(number):
            values = {} if time in missing.get(f"d{device}", []) else {"power_w": watts(time, device)}
            records.append(sample("acme", time, f"d{device}", **values))
    return records


def speaking(times: list[int], name: str = "acme") -> list[Record]:
    """Three devices that tell more than power; of the third neither utilisation nor what holds it back is told."""
    records = [source(name, "accelerator", reason=""), source("aaa", "host")]
    for time in times:
        for device in range(3):
            busy = -1.0 if device == 2 else (time // 1000 % 10) / 10
            own = {"utilisation": busy, "memory_used_mib": 1000.5 + device * 50 + time // 1000 % 7}
            heat = -5.0 + 20 * device + time // 1000 % 9
            records.append(
                sample(name, time, f"d{device}", power_w=watts(time, device), temperature_c=heat, **own)
            )
        throttle = ["", "power,heat" if time > 50_000 else " ", None]
        tick = {"kind": "tick", "time_ms": time, "source": name, "devices": ["d0", "d1", "d2"]}
        records.append({**tick, "readings": {}, "throttle": throttle})
        records.append(sample("aaa", time, "", utilisation=1.0))
    return records


def carried(on: dict[int, Any], *read: int) -> list[Record]:
    """A node of four, those of `read` with power, and those of `on` with the device that carries theirs."""
    records = [source("acme", "accelerator")]
    for time, device in itertools.product(every(), range(4)):
        values: Record = {"power_w": watts(time, device)} if device in read else {}
        records.append(sample("acme", time, f"d{device}", **values, power_on=on.get(device)))
    return records


def standing(begin: int, end: int, times: list[int]) -> list[Record]:
    """A counter that stands still from `begin` to `end`, and power."""
    counts = {time: 9**6 + 8 * (time - min(max(time - begin, 0), end - begin)) for time in times}
    return [RAPL, *(sample("rapl", time, energy_mj=counts[time], power_w=9.0) for time in times)]


def bmc_every(interval: int, times: list[int]) -> list[Record]:
    """The machine's power, to be read once in `interval` ms."""
    return [source("ipmi", "machine", interval / 1000), *(sample("ipmi", t, power_w=watts(t)) for t in times)]


RAPL = source("rapl", "cpu package")
SCENARIOS: dict[str, Scenario] = {
    "power only": [metered(every(700))],
    "a counter that wraps": [[RAPL, *counted(every(), 1500)]],
    "a counter that wraps, on two packages": [
        [RAPL, *counted(every(), 1500), *counted(every(900), 700, device="1")]
    ],
    "a counter that begins anew and has no range": [
        [RAPL, *counted(every(end=50_000), 9, None), *counted(every(begin=50_500), 2, None)]
    ],
    "it begins anew, and power stands in": [
        [RAPL, *(counted(every(end=40_000), 9, None) + counted(every(begin=41_000), 2, None))]
        + [sample("rapl", time, power_w=watts(time)) for time in every(1300)]
    ],
    "a counter through a hole of 31 s": [[RAPL, *counted(without(every(), 20_000, 51_000), 1900)]],
    "a counter through a hole of 32 s": [[RAPL, *counted(without(every(), 20_000, 52_000), 1900)]],
    "a counter that is set back once": [[RAPL, *counted(every(end=50_000), 9), *counted(every(begin=51_000), 8)]],
    "it is set back, and power covers more": [
        [RAPL, *counted(every(end=50_000), 9), *counted(every(begin=53_000), 8)]
        + [sample("rapl", time, power_w=watts(time)) for time in every(1300)]
    ],
    "it is set back, and power covers less": [
        [RAPL, *counted(every(end=50_000), 9), *counted(every(begin=53_000), 8)]
        + [sample("rapl", time, power_w=watts(time)) for time in every(end=90_000)]
    ],
    "a reading of a counter that is too high, and one of 0": [
        [
            RAPL,
            *counted(every(end=50_000), 9, None),
            sample("rapl", 50_400, energy_mj=600_000.0),
            *counted(every(begin=51_000, end=60_000), 9, None),
            sample("rapl", 60_400, energy_mj=0.0),
            *counted(every(begin=61_000), 9, None),
        ]
    ],
    "a counter that leaps": [[RAPL, *counted(every(end=50_000), 9, None), *counted(every(begin=51_000), 500, None)]],
    "two readings of a counter that are 0, one after the other": [
        [
            RAPL,
            *counted(every(end=50_000), 9, None),
            *(sample("rapl", time, energy_mj=0.0) for time in (50_400, 50_600)),
            *counted(every(begin=51_000), 9, None),
        ]
    ],
    "two readings of a counter that are too high, on either side of the window's end": [
        [RAPL, *counted(every(end=99_000), 9, None)]
        + [sample("rapl", time, energy_mj=9.0 * (time + 10_000) + 1_500_000) for time in (99_500, 100_500)]
        + counted(every(begin=101_000, end=110_000), 9, None)
    ],
    "two pairs of readings of a counter that are 0": [
        [
            source("acme", "accelerator"),
            *(
                sample("acme", t, energy_mj=0.0 if t in (20_000, 21_000, 60_000, 61_000) else 300.0 * (t + 10**6))
                for t in every()
            ),
        ]
    ],
    "every reading of a counter twice": [
        [RAPL, *(each for t in every() for each in [*counted([t], 9), sample("rapl", t, energy_mj=9.0 * (t + 10050))])]
    ],
    "a clock that is set back by 20 s": [
        [RAPL, *counted(every(end=50_000), 9, None)]
        + [
            {**each, "time_ms": each["time_ms"] - 20_300}
            for each in counted(every(begin=51_000, end=122_000), 9, None)
        ]
    ],
    "a counter that is updated once in 3 s": [
        [RAPL, *(sample("rapl", time, energy_mj=9 * (time - time % 3000) + 10**6) for time in every())]
    ],
    "a counter that is updated once in 10 s, and power": [
        [RAPL]
        + [sample("rapl", t, energy_mj=9 * (t - t % 10_000) + 10**6, power_w=watts(t)) for t in every()]
    ],
    "a counter that answers late, and power": [
        [RAPL, *counted(every(begin=30_000), 9), *(sample("rapl", t, power_w=watts(t)) for t in every(1300))]
    ],
    "a counter that never moves, for 4 s": [[RAPL, *counted(every(1000, -1000, 3000), 0, None)]],
    "power that nothing draws": [
        [*accelerators(every()), sample("acme", 5500, "d1", power_w=65_535.0), sample("acme", 6500, "d1", power_w=0.0)]
    ],
    "packages without load": [[RAPL, *(sample("rapl", t, power_w=0.0 if t < 50_000 else 2000.5) for t in every())]],
    "a machine of 0 W beside its chips": [
        [source("pwr", "machine"), *(sample("pwr", t, power_w=0.0) for t in every()), *accelerators(every())]
    ],
    "chips of 0 W beside their processors": [
        [source("acme", "accelerator"), *(sample("acme", t, power_w=0.0) for t in every()), RAPL, *counted(every(), 3)]
    ],
    "a counter without a range through a hole of 80 s": [[RAPL, *counted(without(every(), 10_000, 90_000), 5, None)]],
    "a counter's hole over the edge": [[RAPL, *counted(without(every(), -2_000, 8_000), 5)]],
    "a counter that stands still for 4 s": [standing(30_000, 34_000, every())],
    "a counter that stands still for 5 s": [standing(30_000, 35_000, every())],
    "a counter that stands still for 6 s": [standing(30_000, 36_000, every())],
    "a counter that stands still for 6 s, 4.1 s of them in the window": [
        standing(-1900, 4100, every(2000, -5900, 106_100))
    ],
    "readings further apart than a counter with a range can be trusted over": [
        [source("rapl", "cpu package", 20.0), *counted([-10_000, 55_000, 120_000], 3)]
    ],
    "readings as far apart of a counter without a range": [
        [source("rapl", "cpu package", 20.0), *counted([-10_000, 55_000, 120_000], 3, None)]
    ],
    "a reading that is no number": [[*metered(every()), sample("pwr", 5500, power_w=math.nan)]],
    "readings below 0": [
        [*metered(every()), sample("pwr", 5500, power_w=-1.0), sample("pwr", 50_500, power_w=-40.0)]
    ],
    "a record of another form": [[*metered(every()), sample("pwr", 5500, volts=3.0)]],
    "two records of another form, of more than a hundred": [
        [*metered(every()), sample("pwr", 5500, volts=3.0), sample("pwr", 6500, volts=3.0)]
    ],
    "a device that is the host itself": [
        [{key: value for key, value in each.items() if key != "device"} for each in metered(every())]
    ],
    "no sample at the edges": [metered(every(begin=3_300, end=97_100))],
    "99 % and no more": [metered(every(begin=500, end=99_500))],
    "98.9 %": [metered(every(100, begin=500, end=99_400))],
    "half": [metered(every(begin=25_000, end=75_000))],
    "less than half": [metered(every(begin=25_000, end=74_000))],
    "a hole of 5 s": [metered(without(every(), 30_000, 35_000))],
    "a hole of more": [metered(without(every(), 30_000, 35_000 + 1000))],
    "a slow meter that misses one": [bmc_every(10_000, without(every(10_000), 40_000, 60_000))],
    "a slow meter that misses two": [bmc_every(10_000, without(every(10_000), 40_000, 70_000))],
    "a meter that is read around the training alone": [bmc_every(3_600_000, [-9_000, 109_000])],
    "a meter that is read once while training": [bmc_every(3_600_000, [-300_000, 50_000, 400_000])],
    "samples out of order, and two at one time": [
        [*metered(every())[::-1], sample("pwr", 5000, power_w=999.0), sample("pwr", 9000, power_w=55.0)]
    ],
    "accelerators": [accelerators(every())],
    "accelerators, one not always read": [accelerators(every(), d2=every(2000))],
    "accelerators, one never read": [accelerators(every(), d1=every())],
    "accelerators, one with a hole": [accelerators(every(), d3=every(begin=40_000, end=60_000))],
    "accelerators, two to a board": [carried({1: "d0", 3: "d2"}, 0, 2)],
    "two to a board, one without a meter": [carried({1: "d0", 3: "d2"}, 0)],
    "two to a board, one carried by a device that is not there": [carried({1: "d0", 3: "d9"}, 0, 2)],
    "two that carry each other": [carried({1: "d3", 3: "d1"}, 0, 2)],
    "one that carries itself": [carried({3: "d3"}, 0, 1, 2)],
    "one that is carried and read": [carried({1: "d0", 3: "d2"}, 0, 2, 3)],
    "a carrier that is no text": [carried({3: 7}, 0, 1, 2)],
    "accelerators that tell of themselves": [speaking(every())],
    "seldom": [speaking(every(3000))],
    "two nodes that tell of themselves": [speaking(every()), speaking(every(end=80_000), "bcme")],
    "two nodes, one of which tells nothing of itself": [speaking(every()), accelerators(every())],
    "the machine before its chips": [[*accelerators(every()), *metered(every(), "z")]],
    "a meter that does not work": [
        [source("pwr", "machine", reason="no meter"), *accelerators(every()), RAPL, *counted(every(), 3)]
    ],
    "a source that works later": [[source("pwr", "machine", reason="not yet"), *metered(every())]],
    "two of one scope": [[*metered(every(1100), "b"), *metered(every(900), "a")]],
    "two of one scope, the quicker one counts": [
        [*metered(every(2000), "a"), source("a", "machine", 2.0), *metered(every(900), "b")]
    ],
    "a meter outside, by another clock": [[clock(1.5), *bmc(every(2000))]],
    "a meter outside, by a clock that drifts": [[clock(-40.0, 2.5), *bmc(every(2000))]],
    "a meter outside beside the node's own": [[clock(0.75), *bmc(every(2000)), *metered(every())]],
    "a meter that nodes share": [[clock(0.75), *bmc(every(2000), "shared chassis"), *accelerators(every())]],
    "a node that speaks for its meter": [[clock(0.75), *bmc(every(100)), sample("redfish", 5500, "", power_w=5.0)]],
    "two nodes whose clocks differ": [[clock(0.25), *metered(every())], [clock(1.75, 1.0), *metered(every())]],
    "two nodes, of one the clock is not known": [[clock(0.25), *metered(every())], metered(every())],
    "nothing works": [[source("pwr", "machine", reason="no meter")]],
    "no telemetry": [[]],
    "two nodes": [metered(every()), metered(every(800), "acpi")],
    "two nodes, less of one": [metered(every()), metered(every(end=90_000))],
    "two nodes, parts that differ": [metered(every()), [RAPL, *counted(every(), 3)]],
    "two nodes, one without": [metered(every()), []],
}  # fmt: skip


def by_chance(seed: int) -> Scenario:
    """One or two nodes with devices that were read, or not, by chance."""
    chance = random.Random(seed)
    return [_node_by_chance(chance) for _ in range(chance.choice((1, 1, 2)))]


def _node_by_chance(chance: random.Random) -> list[Record]:
    interval = chance.choice((200, 1000, 2500, 15_000))
    records = [source("acme", "accelerator", interval / 1000)]
    holes = [(begin, begin + chance.randrange(70_000)) for begin in chance.sample(range(-9000, WINDOW_MS), 3)]
    times = [
        t + chance.randrange(-interval // 3, interval // 3) for t in every(interval, -9000, WINDOW_MS + 9000)
    ]
    for begin, end in holes[: chance.randrange(4)]:
        times = without(times, begin, end)
    for device in range(chance.randrange(1, 4)):
        missing, still, range_mj = (
            chance.choice((0, 0, 0.05, 0.3)),
            chance.choice((0, 0, 0.5, 0.9)),
            300_000_000,
        )
        kinds = chance.choice((("power_w",), ("energy_mj",), ("power_w", "energy_mj")))
        more = {"energy_range_mj": range_mj} if chance.random() < 0.6 else {}
        counter = chance.randrange(range_mj)
        for time in times:
            counter += 0 if chance.random() < still else chance.randrange(interval * 20_000)
            counter = counter % range_mj if more else counter
            values = {"power_w": chance.uniform(1, 400), "energy_mj": counter}
            read = {
                name: value for name, value in values.items() if name in kinds and chance.random() >= missing
            }
            records.append(
                sample("acme", time, f"d{device}", **read, **(more if "energy_mj" in read else {}))
            )
    return records


# ---- into a run's folder


def write_scenarios(run: Path, case: str, copy: Path, scenarios: list[Scenario]) -> None:
    """A run of as many rounds of `case` as scenarios, all of one number of nodes, without a result."""
    nodes = len(scenarios[0])
    plan = json.loads((run / "plan.json").read_text())
    plan["cases"] = [entry for entry in plan["cases"] if entry["settings"]["name"] == case]
    plan["cases"][0]["settings"] |= {"nnodes": nodes, "repeat": len(scenarios)}
    copy.mkdir(parents=True)
    (copy / "plan.json").write_text(json.dumps(plan))
    journal = [json.loads(line) for line in (run / "journal.jsonl").read_text().splitlines()]
    lines = [line for line in journal if line["event"] == "run_started"]
    for number, scenario in enumerate(scenarios, 1):
        lines += [
            {**lines[0], "event": name, "case": case, "round": number}
            for name in ("round_started", "round_ended")
        ]
        _write_round(run / case / "round1", copy / case / f"round{number}", number, scenario)
    (copy / "journal.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def _write_round(original: Path, folder: Path, number: int, scenario: Scenario) -> None:
    shutil.copytree(original, folder)
    (folder / "result.json").unlink()
    seen = json.loads((folder / "round.json").read_text())
    hosts = ["localhost", "other"][: len(scenario)]
    (ending,) = seen["outcome"]["endings"].values()
    seen |= {"round": number, "hosts": hosts}
    seen["outcome"]["endings"] = {str(rank): ending for rank in range(len(hosts))}
    start = _with_a_long_window(folder / "localhost_noderank0" / "rank0.out.log")
    seen["clocks"] = [_clock_of(records, start / 1000) for records in scenario]
    (folder / "round.json").write_text(json.dumps(seen))
    for rank, (host, records) in enumerate(zip(hosts, scenario, strict=True)):
        every_record = [
            {**record, "time_ms": record["time_ms"] + start}
            for record in records
            if record["kind"] != "clock"
        ]
        outside = [record for record in every_record if record.pop("of_meter", False)]
        if outside:
            text = "".join(json.dumps(record) + "\n" for record in outside)
            (folder / f"{host}_noderank{rank}.meters.jsonl").write_text(text)
        moved = [record for record in every_record if record not in outside]
        # every other round as versions before December 2026 wrote it
        lines = [json.dumps(record) + "\n" for record in (moved if number % 2 else in_ticks(moved))]
        node = folder / f"{host}_noderank{rank}"
        node.mkdir(exist_ok=True)
        (node / "telemetry.jsonl").write_text(
            "".join(lines) + '{"kind": "sam'
        )  # cut off while it was written


def _clock_of(records: list[Record], start_s: float) -> Record:
    """As round.json has it; of no reading where nothing is said, or it is not known."""
    ahead = next((record["ahead"] for record in records if record["kind"] == "clock"), [math.nan])
    if math.isnan(ahead[0]):
        return {"begin": None, "end": None}
    times = (start_s - 10, start_s + WINDOW_MS / 1000 + 10)
    ends = (
        {"time_s": time, "offset_s": by, "uncertainty_s": 0.01} for time, by in zip(times, ahead, strict=True)
    )
    return dict(zip(("begin", "end"), ends, strict=True))


def report(log: Path, facts: Record) -> None:
    """Let FINISHED have another value."""
    lines = log.read_text().splitlines()
    (number,) = (number for number, line in enumerate(lines) if '"FINISHED"' in line)
    event = json.loads(lines[number].partition("]")[2])
    lines[number] = f"text before [PerfLog] {json.dumps({**event, 'value': facts})} and after"
    log.write_text("\n".join(lines) + "\n")


def _with_a_long_window(log: Path) -> int:
    """Let TRAIN_START be 100 s before TRAIN_END; its time in ms."""
    text = log.read_text()
    (end,) = re.findall(r'"TRAIN_END".*"time_ms": (\d+)', text)
    start = int(end) - WINDOW_MS
    log.write_text(re.sub(r'("TRAIN_START".*"time_ms": )\d+', rf"\g<1>{start}", text))
    return start
