"""Values that the controller's tests need: plans, cases, nodes, and the logs that a round leaves."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from run_benchmarks.names import Node, nodes_of
from run_benchmarks.plan.records import CaseFiles, CasePlan, CaseSettings
from run_benchmarks.plan.secrets import NO_SECRETS, Secrets
from run_benchmarks.plan.vendor_record import Chip, Vendor
from run_benchmarks.results.judge import judge_logs
from run_benchmarks.results.planned import planned
from run_benchmarks.results.round_result import Observation, RoundResult
from run_benchmarks.round_state import judged, write_observation, write_result
from run_benchmarks.stages.watch import Outcome
from utils.events import Event, EventName, format_line
from utils.node import rank_log_name
from utils.records import Failure

CHIP = Chip("X1", ("Acme X1",), 32.0, {"bf16": 1e14}, {"": "a data sheet"})
VENDOR = Vendor(
    name="acme",
    folder=Path("training/acme"),
    device_type="acme",
    visible_devices_env="ACME_VISIBLE_DEVICES",
    collective_backend={"pytorch": "gloo"},
    container_options=("--device=/dev/acme",),
    chips={"X1": CHIP},
    list_devices_command=("acme-list",),
    parse_devices=str.splitlines,
)
FILES = CaseFiles(
    case_dir="benchmarks/toy/pytorch",
    script="benchmarks/driver/run_pretraining.py",
    script_args=("--case_dir", "benchmarks/toy/pytorch"),
    config_dir="acme/toy-pytorch/config",
    config_file="config_X1x2x1.py",
    extern_dir="acme/toy-pytorch/extern",
    requirements=(),
    environment_script=None,
    dockerfile_dir="acme/docker_image/pytorch",
    install_script=None,
)
# What a FINISHED event holds that makes sense: 1000 samples in 10 s, of which 8 without evaluations.
FINISHED: Mapping[str, Any] = {
    "e2e_time": 15.0,
    "init_time": 2.0,
    "raw_train_time": 10.0,
    "no_eval_time": 8.0,
    "pure_compute_time": 5.0,
    "time_to_target": 9.0,
    "num_trained_samples": 1000,
    "num_trained_tokens": 64000,
    "global_steps": 50,
    "precision": "bf16",
    "converged": True,
    "final_loss": 1.5,
    "metric": "mlm_accuracy",
    "final_mlm_accuracy": 0.33,
    "target": 0.3,
    "model_flops_per_sample": 1e9,
    "flops_formula": "6 N",
    "mem_allocated_bytes": None,
}
START_MS, END_MS = 1_700_000_000_000, 1_700_000_010_000


def with_own_script(case: CasePlan) -> CasePlan:
    """The same, trained by a script of its own in place of the driver."""
    files = replace(case.files, script=f"{case.files.case_dir}/run_pretraining.py", script_args=())
    return replace(case, files=files)


def make_case(
    hosts: Sequence[str] = ("h1", "h2"), *, name: str = "toy:pytorch:X1:2:1:1", chip: Chip | None = CHIP
) -> CasePlan:
    """A case on `hosts`, with one process each."""
    settings = CaseSettings(
        name=name,
        vendor=VENDOR.name,
        model="toy",
        framework="pytorch_2.1",
        config="config_X1x2x1",
        nnodes=len(hosts),
        nproc=1,
        repeat=1,
        data_dir_host="/data/toy",
        data_dir_container="/mnt/data/toy",
    )
    return CasePlan(settings, VENDOR, FILES, tuple(hosts), chip, {"target": 0.3}, deadline_s=3600.0)


def make_nodes(hosts: Sequence[str] = ("h1", "h2")) -> tuple[Node, ...]:
    """The nodes of the first round of such a case."""
    return nodes_of(make_case(hosts), 1)


def observed(
    case: CasePlan, *, failure: Failure | None = None, outcome: Outcome | None = None
) -> Observation:
    """What the controller saw of the first round of a case."""
    return Observation(
        case=case.settings.name,
        round=1,
        hosts=case.hosts,
        started="2026-01-02T03:04:05+00:00",
        time_s=21.5,
        failure=failure,
        outcome=outcome,
        times={"train": 15.5},
    )


def judge_folders(case: CasePlan, folders: Sequence[Path], failure: Failure | None = None) -> RoundResult:
    """The result of a round by its node folders."""
    return judge_logs(planned(case), folders, observed(case, failure=failure))


def conclude(case: CasePlan, seen: Observation, folder: Path, secrets: Secrets = NO_SECRETS) -> RoundResult:
    """What a round does when its logs are home, without waiting for signals: round.json, the verdict, result.json."""
    seen = write_observation(seen, folder)
    return write_result(judged(case, seen, folder, secrets), folder)


def training_events(**finished: Any) -> list[Event]:
    """What rank 0 reports of a training from START_MS to END_MS; `finished` overrides FINISHED's values."""
    values = {**FINISHED, **finished}
    evaluated = {
        "metric": values["metric"],
        "mlm_accuracy": values["final_mlm_accuracy"],
        "global_steps": values["global_steps"],
        "num_trained_samples": values["num_trained_samples"],
    }
    return [
        Event(EventName.INIT_START, {}, START_MS - 2000),
        Event(EventName.TRAIN_START, {}, START_MS),
        Event(EventName.STEP_END, {"global_steps": 1, "loss": 7.0, "seq/s": 100.0}, START_MS + 200),
        Event(EventName.EVALUATE, evaluated, END_MS - 10),
        Event(EventName.TRAIN_END, {}, END_MS),
        Event(EventName.FINISHED, values, END_MS + 10),
    ]


def write_rank_log(folder: Path, events: Sequence[Event], *, rank: int = 0, tail: str = "") -> Path:
    """A rank's log with these events in it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / rank_log_name(rank)
    lines = ["some library's warning", *map(format_line, events), tail]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def perf_log(event: str, value: str, **metadata: object) -> str:
    """A PerfLog line as another's code may write it: `value` is raw JSON."""
    return f'[PerfLog] {{"event": "{event}", "value": {value}, "metadata": {json.dumps(metadata)}}}'
