"""Every figure of a run, computed again from its raw files as docs/results.md says it, and from nothing else.

An auditor's work: it was written from that page alone, with the standard library alone, and imports nothing of
FlagPerf, so that an error there cannot be an error here too. Where the two disagree, one of them or the page is wrong.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.audit import power
from tests.audit.power import Value, number

COUNTED = r"([kKMGTP]i?)?(B|b|bytes?|bits?|FLOPs?|OPs?|(sample|token|image|sequence|step|iteration)s?)/s"
PREFIXES = {"": 1.0, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
LARGEST_EVENT = 2**20  # bytes
GIB = 2**30
MOST_OF_A_CASE = 200
TIMES = ("init_time", "raw_train_time", "no_eval_time", "pure_compute_time")
EARLIER_TIMES = ("train_time", "train_no_eval_time", "pure_training_computing_time")
RATES = {"p_whole": "raw_train_time", "p_train": "no_eval_time", "p_core": "pure_compute_time"}
EARLIER_RATES = {"p_whole": "raw", "p_train": "no_eval", "p_core": "pure_compute"}
EARLIER_WHOLE = ("training_sequences_per_second", "training_images_per_second")

Figures = dict[str, Value]


def figures_of_run(run: Path) -> dict[tuple[str, int], Figures]:
    """Case and round -> the figures of each round that left a round.json."""
    rounds = run.glob("*/round*/round.json")
    return {(path.parts[-3], int(path.parts[-2][5:])): figures_of_round(path.parent) for path in rounds}


def figures_of_round(folder: Path) -> Figures:
    """Name -> value of every figure that the result of this round has to list."""
    seen = json.loads((folder / "round.json").read_text(encoding="utf-8"))
    case = plan_of(folder)
    events = rank0_events(folder, seen)
    facts = next((value for name, value, _ in events if name == "FINISHED"), None)
    trains = case["parameters"].get("case_kind") != "measure"
    own = {"round_time": number(seen.get("time_s"))}
    if facts is not None:
        own |= of_training(with_todays_names(facts, case), case)
    elif trains:
        own |= until_the_cut(events)
    samples = number((facts or {}).get("num_trained_samples"))
    evaluated = [time_ms for name, _, time_ms in events if name == "EVALUATE"]
    met = evaluated[-1] if evaluated and (facts or {}).get("converged") is True else None
    starts = {rank: ranks_start(folder, seen, rank) for rank in range(len(seen["hosts"]))}
    own |= power.figures(folder, seen["hosts"], window(events), samples, met, starts, seen.get("clocks", ()))
    own |= estimated(case, own.get("energy"), len(seen["hosts"]), own.get("samples_per_joule") is not None)
    own |= power.of_accelerators(folder, seen["hosts"], window(events), seen.get("clocks", ()))
    listed = {name: own.get(name) for name in NAMES if trains or own.get(name) is not None}
    return listed | figures_of_case(facts or {}, case)


NAMES = (
    *("e2e_time", "round_time", *TIMES, "time_to_target", *RATES, "tokens_per_second", "MFU", "acc"),
    *("final_loss", "samples", "steps", "mem", "mem_reserved", "mem_total"),
    *("energy", "avg_power", "max_power", "idle_power", "energy_above_idle", "energy_to_target"),
    *("samples_per_joule", *power.READ, "carbon_estimate", "cost_estimate"),
)  # fmt: skip


# ---- reading


def plan_of(folder: Path) -> dict[str, Any]:
    """The entry of the round's case in plan.json."""
    cases = json.loads((folder.parents[1] / "plan.json").read_text(encoding="utf-8"))["cases"]
    (case,) = (case for case in cases if case["settings"]["name"] == folder.parent.name)
    return dict(case)


def rank0_events(folder: Path, seen: dict[str, Any]) -> list[tuple[str, dict[str, Any], float]]:
    """Name, value and time in ms of global rank 0's events, in order."""
    return events_of(folder, seen, 0, 0)


def ranks_start(folder: Path, seen: dict[str, Any], node: int) -> Value:
    """When a node's first rank was started, in ms of its clock."""
    nproc = plan_of(folder)["settings"]["nproc"]
    events = events_of(folder, seen, node, node * nproc)
    begun = next((value for name, value, _ in events if name == "INIT_START"), {})
    return number(begun.get("ranks_start_ms"))


def events_of(
    folder: Path, seen: dict[str, Any], node: int, rank: int
) -> list[tuple[str, dict[str, Any], float]]:
    """The events of a rank, likewise."""
    log = folder / f"{seen['hosts'][node]}_noderank{node}" / f"rank{rank}.out.log"
    if not log.exists():
        return []
    lines = log.read_bytes().decode("utf-8", "replace").split("\n")
    events = (event_of(line.partition("[PerfLog]")[2], rank) for line in lines if "[PerfLog]" in line)
    return [event for event in events if event]


def event_of(text: str, rank: int = 0) -> tuple[str, dict[str, Any], float] | None:
    """The event that begins the text behind the mark."""
    try:
        event, end = json.JSONDecoder().raw_decode(text.lstrip())
        if end > LARGEST_EVENT or event["metadata"]["rank"] != rank:
            return None
        return event["event"], event["value"], event["metadata"]["time_ms"]
    except (ValueError, TypeError, KeyError):
        return None


def window(events: list[tuple[str, dict[str, Any], float]]) -> tuple[float, float] | None:
    """TRAIN_START to TRAIN_END, in ms of the wall clock."""
    times = {name: time_ms for name, _, time_ms in events}
    start, end = number(times.get("TRAIN_START")), number(times.get("TRAIN_END"))
    return None if start is None or end is None or end <= start else (start, end)


def estimated(case: dict[str, Any], energy: Value, nodes: int, is_whole: bool) -> Figures:
    """By the user's factors, where the whole window was sampled."""
    factors = case.get("energy_factors") or {}
    price = (factors.get("cost_per_kwh") or [None])[0]
    each = {"carbon_estimate": factors.get("carbon_g_per_kwh"), "cost_estimate": price}
    return {
        name: None if factor is None or energy is None or not is_whole else energy * nodes / 3.6e6 * factor
        for name, factor in each.items()
    }


def quotient(above: Value, below: Value) -> Value:
    return None if above is None or below is None or below <= 0 else above / below


# ---- the figures of training


def of_training(facts: dict[str, Any], case: dict[str, Any]) -> Figures:
    """All that follows from the value of FINISHED."""
    value = {name: number(fact) for name, fact in facts.items()}
    samples = value.get("num_trained_samples")
    own: Figures = {name: value.get(name) for name in ("e2e_time", *TIMES, "time_to_target", "final_loss")}
    own |= {name: quotient(samples, own[time]) for name, time in RATES.items()}
    own |= {name: own[name] if own[name] is not None else earlier_rate(value, name) for name in RATES}
    own["tokens_per_second"] = quotient(value.get("num_trained_tokens"), own["no_eval_time"])
    own["MFU"] = mfu(facts, own["p_train"], case)
    own["acc"] = value.get(f"final_{facts.get('metric')}")
    own |= {"samples": samples, "steps": value.get("global_steps")}
    memory = {"mem": "allocated", "mem_reserved": "reserved", "mem_total": "total"}
    return own | {name: quotient(value.get(f"mem_{which}_bytes"), GIB) for name, which in memory.items()}


def mfu(facts: dict[str, Any], p_train: Value, case: dict[str, Any]) -> Value:
    flops, peak = number(facts.get("model_flops_per_sample")), peak_of(case, facts.get("precision"))
    if flops is None or p_train is None or peak is None:
        return None
    return quotient(flops * p_train, case["settings"]["nnodes"] * case["settings"]["nproc"] * peak)


def peak_of(case: dict[str, Any], dtype: Any) -> Value:
    """FLOP/s of one chip."""
    return number(((case["chip"] or {}).get("peak_flops") or {}).get(dtype))


def until_the_cut(events: list[tuple[str, dict[str, Any], float]]) -> Figures:
    """What a round without FINISHED had reported of itself."""
    evaluations = [value for name, value, _ in events if name == "EVALUATE"]
    starts = [value for name, value, _ in events if name == "INIT_END"]
    counted = [value for name, value, _ in events if name in {"STEP_END", "EVALUATE"}]
    start = starts[-1] if starts else {}
    earlier = start.get("continued") or {}
    last = evaluations[-1] if evaluations else {}
    most = max(counted, key=lambda value: number(value.get("global_steps")) or 0.0, default={})
    samples, steps = number(most.get("num_trained_samples")), number(most.get("global_steps"))
    return {
        "init_time": number(start.get("init_time")),
        "acc": number(last.get(last.get("metric", ""))),
        "samples": None if samples is None else samples - earlier.get("samples", 0),
        "steps": None if steps is None else steps - earlier.get("step", 0),
    }


# ---- cases of earlier versions


def with_todays_names(facts: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    """The value of FINISHED with the names of earlier versions' scripts under today's."""
    renamed = {new: facts.get(old) for new, old in zip(TIMES[1:], EARLIER_TIMES, strict=True)}
    metrics = [name[6:] for name in facts if name.startswith("final_") and name != "final_loss"]
    if len(metrics) > 1:
        metrics = [name for name in metrics if f"target_{name}" in case["parameters"]]
    renamed |= {"metric": metrics[0]} if len(metrics) == 1 else {}
    return renamed | {name: value for name, value in facts.items() if value is not None}


def earlier_rate(value: Figures, name: str) -> Value:
    """A rate that the case computed itself."""
    part = EARLIER_RATES[name]
    names = [f"throughput(ips)_{part}", f"throughput(sps)_{part}", f"throuhgput(ips)_{part}"]
    rates = (value.get(each) for each in (*names, *(EARLIER_WHOLE if name == "p_whole" else ())))
    return next((rate for rate in rates if rate is not None and rate > 0), None)


# ---- a case's own figures


def figures_of_case(facts: dict[str, Any], case: dict[str, Any]) -> Figures:
    """The figures that the case defines, and the part of the peak of those that are rates."""
    own: Figures = {}
    valid = {name: entry for name, entry in (facts.get("figures") or {}).items() if is_valid(name, entry)}
    for name, entry in list(valid.items())[:MOST_OF_A_CASE]:
        own[name] = value = float(entry["value"])
        if "peak" in entry:
            prefix = entry["unit"][0] if entry["unit"][0] in PREFIXES else ""
            own[f"{name}_of_peak"] = quotient(value * PREFIXES[prefix], peak_of(case, entry["peak"]))
    return own


def is_valid(name: str, entry: Any) -> bool:
    """Whether it is of the form that the page's table has."""
    if not re.fullmatch("[A-Za-z][A-Za-z0-9_]{0,63}", name) or name in NAMES or name.endswith("_of_peak"):
        return False
    texts = {"unit": 40, "window": 200, "definition": 600} | ({"caveat": 200} if "caveat" in entry else {})
    return (
        all(is_a_line(entry.get(key), most) for key, most in texts.items())
        and number(entry.get("value")) is not None
        and entry.get("better", "") in {"higher", "lower", None}
        and (entry["value"] > 0 or not re.fullmatch(COUNTED, entry["unit"]))
        and ("peak" not in entry or bool(re.fullmatch("[MGTP]?(FLOP|OP)/s", entry["unit"])))
    )


def is_a_line(text: Any, most: int) -> bool:
    return isinstance(text, str) and len(text) <= most and "\n" not in text
