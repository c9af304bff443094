"""The folder of a run that never was: nodes full of accelerators, each sampled once a second for hours.

Everything stands in it in the form in which the controller and the monitors write it. Two things are hidden in the
samples, for whoever looks at them through a chart: one reading of SPIKE_W, and one device that is hotter than all.
"""

from __future__ import annotations

import json
import math
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from run_benchmarks.names import JOURNAL, node_folder_name
from run_benchmarks.results.round_result import RoundResult, write_json
from run_benchmarks.results.rules import Rules
from run_benchmarks.results.summary import Run, write_summary
from run_benchmarks.stages.checks import Check, Status
from run_benchmarks.stages.preflight import CHECKS, reachable
from utils.events import Event, EventName, format_line
from utils.figures import Peak, figures_from_finished
from utils.node import rank_log_name
from utils.records import Verdict
from utils.telemetry.lines import TELEMETRY_FILE, record_line
from utils.telemetry.records import Sample, Scope, SourceInfo, Tick

CASE = "bert:pytorch:H100:8:8:1"
START_MS = 1_700_000_000_000
SPIKE_W = 912.0
SAMPLES_PER_S = 21_300
INIT_S, EVALUATION_S, SAVING_S = 60.0, 20.0, 5.0
CHECK_NAMES = [checker.__name__.replace("_", " ") for checker in (reachable, *CHECKS)]
PARAMETERS = {
    "case_kind": "converge",
    "target_mlm_accuracy": 0.71,
    "train_batch_size": 48,
    "learning_rate": 3.5e-4,
}


@dataclass(frozen=True)
class Made:
    """What is made. hosts: of the nodes; seconds: how long it was sampled; steps: that rank 0 reported."""

    hosts: tuple[str, ...]
    devices: int = 8
    seconds: int = 36_000
    steps: int = 7_200
    case: str = CASE
    metric: str = "mlm_accuracy"
    source: str = "nvml"
    rounds: int = 1


def write_made_run(folder: Path, made: Made) -> Run:
    """Write the run's folder."""
    folder.mkdir(parents=True)
    write_json(folder / "plan.json", {"cases": [_plan(made)], "done": {}})
    results = tuple(
        _write_round(folder / made.case / f"round{number}", made, number)
        for number in range(1, made.rounds + 1)
    )
    started = {
        "time": START_MS / 1000,
        "event": "run_started",
        "run": folder.name,
        "uid": f"{folder.name}-abcdef",
    }
    (folder / JOURNAL).write_text(json.dumps(started) + "\n")
    checks = {host: [Check(name, Status.OK, "") for name in CHECK_NAMES] for host in made.hosts}
    run = Run(folder.name, f"{folder.name}-abcdef", "2023-11-14T22:13:20+00:00", 0, results, checks)
    write_summary(folder, run)
    return run


def _plan(made: Made) -> dict[str, Any]:
    settings = {"name": made.case, "framework": "pytorch", "nnodes": len(made.hosts), "nproc": made.devices}
    return {
        "settings": {**settings, "repeat": made.rounds},
        "files": {"script": "benchmarks/driver/run_pretraining.py", "case_dir": "benchmarks/bert/pytorch"},
        "chip": {"name": "H100", "peak_flops": {"bf16": 989.4e12}, "source": "a data sheet"},
        "parameters": PARAMETERS,
        "deadline_s": 2.0 * made.seconds,
    }


def _write_round(folder: Path, made: Made, number: int) -> RoundResult:
    finished = _finished(made, 1 + 0.004 * number)
    for rank, host in enumerate(made.hosts):
        node = folder / node_folder_name(host, rank)
        node.mkdir(parents=True)
        with (node / TELEMETRY_FILE).open("w", encoding="utf-8") as file:
            _write_samples(file, made, rank)
        if rank == 0:
            events = _events(made, finished)
            (node / rank_log_name(0)).write_text("".join(f"{format_line(event)}\n" for event in events))
    peak = Peak(len(made.hosts) * made.devices, 989.4e12, "a data sheet")
    result = RoundResult(
        case=made.case,
        round=number,
        started="2023-11-14T22:13:20+00:00",
        hosts=made.hosts,
        times={
            "acquire": 2.0,
            "deploy": 9.0,
            "image": 95.0,
            "launch": 14.0,
            "train": float(made.seconds),
            "collect": 31.0,
        },
        verdict=Verdict.CONVERGED,
        rules=Rules(stamp="closed"),
        figures=figures_from_finished(finished, peak),
        facts=finished,
    )
    write_json(folder / "result.json", result.as_dict())
    return result


def _finished(made: Made, slowness: float) -> dict[str, Any]:
    train = (made.seconds - INIT_S) * 0.97
    apart = EVALUATION_S * _evaluations(made) + SAVING_S
    return {
        "e2e_time": made.seconds * 0.99,
        "init_time": INIT_S,
        "raw_train_time": train,
        "no_eval_time": train - apart,
        "pure_compute_time": (train - apart) * 0.98,
        "eval_time": apart - SAVING_S,
        "checkpoint_time": SAVING_S,
        "time_to_target": train * slowness,
        "num_trained_samples": int(SAMPLES_PER_S * (train - apart)),
        "global_steps": made.steps,
        "precision": "bf16",
        "converged": True,
        "final_loss": 1.35,
        "metric": made.metric,
        f"final_{made.metric}": 0.7117,
        "target": 0.71,
        "model_flops_per_sample": 9.6e11,
        "mem_allocated_bytes": 61.2 * 2**30,
    }


def _evaluations(made: Made) -> int:
    return max(2, made.seconds // 3600)


def _events(made: Made, finished: dict[str, Any]) -> list[Event]:
    """Rank 0's: a loss that falls with noise, a rate that dips once, an evaluation now and then."""
    draw = random.Random(7)
    begin, step_ms = START_MS + int(INIT_S * 1000), finished["raw_train_time"] * 1000 / made.steps
    events = [
        Event(EventName.INIT_START, {}, START_MS),
        Event(EventName.INIT_END, {"init_time": INIT_S}, begin),
    ]
    events.append(Event(EventName.TRAIN_START, {}, begin))
    every = max(1, made.steps // _evaluations(made))
    for step in range(1, made.steps + 1):
        part, now = step / made.steps, begin + int(step * step_ms)
        rate = SAMPLES_PER_S * (0.62 if 0.55 < part < 0.57 else 1) * draw.uniform(0.985, 1.01)
        values = {
            "global_steps": step,
            "loss": 1.3 + 6 * math.exp(-6 * part) + draw.uniform(0, 0.12),
            "seq/s": rate,
        }
        values["learning_rate"] = 3.5e-4 * min(1, part / 0.05) * (1 - part)
        events.append(Event(EventName.STEP_END, values, now))
        if step % every == 0:
            quality = {made.metric: 0.712 - 0.55 * math.exp(-5 * part), "metric": made.metric, "target": 0.71}
            events.append(
                Event(EventName.EVALUATE, {**quality, "global_steps": step, "eval_time": EVALUATION_S}, now)
            )
        if step == made.steps // 2:
            saved = {"global_steps": step, "checkpoint_time": SAVING_S}
            events.append(Event(EventName.CHECKPOINT, saved, now + int(SAVING_S * 1000)))
    end = begin + int(finished["raw_train_time"] * 1000)
    return [*events, Event(EventName.TRAIN_END, {}, end), Event(EventName.FINISHED, finished, end + 500)]


def _write_samples(file: Any, made: Made, node: int) -> None:
    """A line of all devices a second, and the host's own."""
    draw = random.Random(node)
    file.write(record_line(SourceInfo(START_MS - 2000, made.source, Scope.ACCELERATOR, 1.0)))
    file.write(record_line(SourceInfo(START_MS - 2000, "cpu", Scope.HOST, 1.0)))
    offsets = [draw.gauss(0, 1) for _ in range(made.devices)]  # no two cards are alike
    spike = made.seconds * 2 // 5
    names = [str(device) for device in range(made.devices)]
    for second in range(made.seconds):
        now = START_MS + 1000 * second + draw.randrange(60)
        busy = INIT_S < second < made.seconds * 0.97
        file.write(record_line(Sample(now, "cpu", utilisation=draw.uniform(0.2, 0.3))))
        watts = [25 * offset + (draw.uniform(600, 650) if busy else 120) for offset in offsets]
        if (node, second) == (0, spike):
            watts[1] = SPIKE_W
        hot = [
            14 * ((node, device) == (len(made.hosts) - 1, made.devices - 1)) for device in range(made.devices)
        ]
        readings = {
            "utilisation": [0.97 * busy] * made.devices,
            "power_w": [round(each, 1) for each in watts],
            "memory_used_mib": [62_000 * busy + 900] * made.devices,
            "memory_total_mib": [81559] * made.devices,
            "temperature_c": [
                round(45 + 18 * busy + more + 2 * offset + draw.randrange(3))
                for more, offset in zip(hot, offsets, strict=True)
            ],
        }
        file.write(record_line(Tick(now, made.source, names, readings)))
