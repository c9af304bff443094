"""The trial where the vendor's chips are: rates of gemm, a short BERT, its numbers, the monitor under load, memory."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from run_benchmarks.conformance.folder import chip_of
from run_benchmarks.conformance.records import CheckResult, failed, named, not_proven
from run_benchmarks.conformance.sandbox import Done, Sandbox, add_settings, failure_of, smallest_config
from run_benchmarks.conformance.without_chip import make_data
from run_benchmarks.plan.vendor_record import Chip, Vendor
from run_benchmarks.results.power import training_window
from run_benchmarks.results.telemetry_file import read_telemetry
from utils.config_files import load_constants
from utils.errors import FlagPerfError
from utils.monitors.accelerators import monitor_file
from utils.telemetry.lines import TELEMETRY_FILE
from utils.telemetry.records import Telemetry, Window

BERT, GEMM = "bert-pytorch", "gemm-pytorch"
LIMIT_S = 600.0  # of a run
IDLE_TICKS, INTERVAL_S = 6, 0.5
MOST_BUSY = 0.5  # of a device that is to show what a load does
STEPS = 8
# No checkpoint and no target: some steps from random weights. The rate is low so that no loss leaves the numbers.
SHORT: Mapping[str, Any] = {
    "init_checkpoint": "", "init_evaluation": False, "target_mlm_accuracy": 1.0, "max_steps": STEPS, "log_freq": 1,
    "max_samples_termination": None, "eval_interval_samples": None, "eval_interval_steps": None, "warmup_steps": 0,
    "learning_rate": 1e-6, "lr_schedule": "constant",
}  # fmt: skip
COMPARED = {"train_batch_size": 4, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
SAMPLES, EVALUATED = 2048, 64
# A device keeps some of its memory to itself.
LEAST_MEMORY, MOST_MEMORY = 0.9, 1.02
GIB = 2**30


def checks(sandbox: Sandbox, vendor: Vendor, devices: Sequence[str]) -> Iterator[CheckResult]:
    """What the first chip shows that has configurations.

    Raises:
        FlagPerfError: a run left no result.
    """
    chip = vendor.chips.get(chip_of(vendor, devices[0]))
    if chip is None:
        remedy = "add a part of its name to device_names in CHIPS"
        yield from named("chip", [not_proven(f"{devices[0]} is no chip of vendor.py", vendor.folder, remedy)])
        return
    idle = _idle(sandbox, vendor)
    gemm = yield from _gemm(sandbox, vendor, chip)
    if gemm is not None:
        yield from named("monitor under load", _moves(vendor, idle, gemm), "it shows more than before it")
    yield from _bert(sandbox, vendor, chip)


def _gemm(sandbox: Sandbox, vendor: Vendor, chip: Chip) -> Any:
    shipped = smallest_config(vendor.folder, GEMM, chip.name)
    if shipped is None:
        yield from named("gemm", [not_proven("there is no configuration of it", vendor.folder)])
        return None
    sandbox.config_for(shipped, chip.name, 1)
    data = sandbox.folder / "none"
    data.mkdir()
    done = sandbox.run(f"gemm:pytorch:{chip.name}:1:1:1", data, LIMIT_S)
    rates = {
        n: f.value for n, f in done.result.figures.items() if n.startswith("gemm_") and f.unit.endswith("/s")
    }
    shown = ", ".join(f"{name} {value:.4g} T/s" for name, value in rates.items() if value)
    yield from named("gemm", [*failure_of(done), *_above_peak(done)], shown)
    return None if done.result.failure else done


def _above_peak(done: Done) -> Iterator[CheckResult]:
    for name, figure in done.result.figures.items():
        if name.endswith("_of_peak") and figure.value is not None and figure.value > 1:
            yield failed(
                f"{name} is {figure.value:.3f}: {figure.source}", "", "correct the chip's peak, or find out"
            )


def _bert(sandbox: Sandbox, vendor: Vendor, chip: Chip) -> Iterator[CheckResult]:
    shipped = smallest_config(vendor.folder, BERT, chip.name)
    if shipped is None:
        yield from named("BERT", [not_proven("there is no configuration of it", vendor.folder)])
        return
    config = sandbox.config_for(shipped, chip.name, 1)
    add_settings(config, SHORT)
    case = sandbox.training / "benchmarks" / "bert" / "pytorch"
    values = {**load_constants(case / "config" / "_base.py"), **load_constants(config)}
    amount = {"training": SAMPLES, "evaluation": EVALUATED, "tokens": values["max_position_embeddings"]}
    data = make_data(sandbox, {**amount, "vocabulary": values["vocab_size"]})
    done = sandbox.run(f"bert:pytorch:{chip.name}:1:1:1", data, LIMIT_S)
    rate = done.result.figures.get("p_train")
    shown = (
        f"{STEPS} steps; p_train {rate.value:.4g} {rate.unit}" if rate and rate.value else f"{STEPS} steps"
    )
    yield from named("a short BERT", failure_of(done), shown)
    if not done.result.failure:
        yield from named("memory", memory_trouble(done.result.facts, chip), _memory_shown(done))
    rows = _numbers(sandbox, vendor, case, config, data)
    yield from named("numbers of a step against the CPU", _wrong_numbers(rows), _shown(rows))


def memory_trouble(facts: Mapping[str, Any], chip: Chip) -> Iterator[CheckResult]:
    """What does not fit together of the device's memory, the most that was used of it, and the chip's."""
    total, peak = (facts.get(f"mem_{name}_bytes") for name in ("total", "reserved"))
    if not total or not peak:
        yield not_proven("the device tells of no memory of its own")
    elif peak > total:
        yield failed(f"{peak / GIB:.2f} GiB were reserved of {total / GIB:.2f}")
    elif chip.memory_gib is None:
        yield not_proven(f"the device tells {total / GIB:.2f} GiB, and CHIPS says nothing: add it")
    elif not LEAST_MEMORY <= total / GIB / chip.memory_gib <= MOST_MEMORY:
        yield failed(
            f"the device tells {total / GIB:.2f} GiB, CHIPS says {chip.memory_gib}", "", "correct memory_gib"
        )


def _memory_shown(done: Done) -> str:
    total, peak = (done.result.facts.get(f"mem_{name}_bytes") or 0 for name in ("total", "reserved"))
    return f"{peak / GIB:.2f} GiB reserved of {total / GIB:.2f}"


def _numbers(sandbox: Sandbox, vendor: Vendor, case: Path, config: Path, data: Path) -> Mapping[str, Any]:
    options = {
        "case_dir": case, "data_dir": data, "vendor": vendor.name, "extern_config_dir": config.parent,
        "extern_config_file": config.name, **COMPARED,
    }  # fmt: skip
    words = ["--enable_extern_config", *(f"--{name}={value}" for name, value in options.items())]
    done = sandbox.run_module("benchmarks.driver.pytorch.one_step", *words, limit_s=LIMIT_S)
    try:
        rows: Mapping[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])["precisions"]
    except (IndexError, ValueError, LookupError) as error:
        words = done.stderr.strip().splitlines()[-3:]
        raise FlagPerfError(f"a step was not compared: {' | '.join(words)}", where=str(config)) from error
    return rows


def _wrong_numbers(rows: Mapping[str, Any]) -> Iterator[CheckResult]:
    for precision, row in rows.items():
        if not row["within"]:
            remedy = "suspect a kernel or the library: compare operator by operator"
            yield failed(f"{precision}: {row.get('error') or _row(row)}", "", remedy)


def _shown(rows: Mapping[str, Any]) -> str:
    return "; ".join(f"{precision}: {_row(row)}" for precision, row in rows.items())


def _row(row: Mapping[str, Any]) -> str:
    pairs = ((name, value, row["tolerance"][name]) for name, value in row["differences"].items())
    numbers = ((name, "none" if value is None else f"{value:.1e}", most) for name, value, most in pairs)
    return ", ".join(f"{name} {value} of {most:g}" for name, value, most in numbers)


def _idle(sandbox: Sandbox, vendor: Vendor) -> Telemetry:
    """What the monitors say before anything runs."""
    folder = sandbox.folder / "idle"
    folder.mkdir()
    words = ["--log-dir", str(folder), "--vendor-dir", str(sandbox.vendor_folder)]
    words += ["--interval", str(INTERVAL_S), "--ticks", str(IDLE_TICKS)]
    sandbox.run_module("utils.monitors", *words, limit_s=LIMIT_S)
    return read_telemetry(folder / TELEMETRY_FILE)


def _moves(vendor: Vendor, idle: Telemetry, done: Done) -> Iterator[CheckResult]:
    """Power and use of a device are higher under load than before it; of a CPU, the host's own monitor says so."""
    file, telemetry, window = monitor_file(vendor.folder), done.telemetry(), training_window(done.events())
    source = "cpu" if vendor.device_type == "cpu" else vendor.name
    info = telemetry.info(source)
    if info is None or info.reason or isinstance(window, str):
        reason = info.reason if info else "it is not there"
        yield not_proven(f"nothing is sampled: {reason if not isinstance(window, str) else window}", file)
        return
    yield from load_trouble(idle, telemetry, window, source)


def load_trouble(idle: Telemetry, loaded: Telemetry, window: Window, source: str) -> Iterator[CheckResult]:
    """Where the devices of `source` show no more in the window of a load than before it, or nobody can tell."""
    busy = highest_mean(idle, source, "utilisation", None)
    if busy is not None and busy > MOST_BUSY:
        remedy = "end what else runs on them, and try again"
        yield not_proven(f"the devices were in use before the load: {busy:.0%}", "", remedy)
        return
    for name in ("utilisation", "power_w"):
        before = highest_mean(idle, source, name, None)
        under = highest_mean(loaded, source, name, window)
        if before is None or under is None:
            yield not_proven(f"the monitor tells no {name}")
        elif under <= before:
            yield failed(f"{name} was {before:.3g} before the load and {under:.3g} under it")


def highest_mean(telemetry: Telemetry, source: str, name: str, window: Window | None) -> float | None:
    """The mean of the device where it is highest: a case may use one of many."""
    means = []
    for samples in telemetry.devices(source).values():
        inside = [s for s in samples if window is None or window.start_ms <= s.time_ms <= window.end_ms]
        values = [value for sample in inside if (value := getattr(sample, name)) is not None]
        means += [fmean(values)] if values else []
    return max(means, default=None)
