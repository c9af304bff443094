"""A run of benches/gpu.py: its parts, what they came to, and the report."""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gpu_report as report
import torch
from gpu_cases import GEMM, GEMM_SETTINGS, GEMM_SMALL, TRAINING
from gpu_rounds import TRAINING as CHECKOUT
from gpu_rounds import PartError, Place, Round
from made_data import MAKERS

from utils.loading import load_module

SHOWN_SETTINGS = ("precision", "train_batch_size", "gradient_accumulation_steps", "torch_compile")
NUMERICS = Path(__file__).with_name("gpu_numerics.py")


class GpuRun:
    """Everything that is measured, in `folder`.

    Raises:
        SystemExit: there is no device that a configuration is for.
    """

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options = options
        vendor, chip = ("cpu", "cpu") if options.device == "cpu" else ("nvidia", nvidia_chip())
        self.place = Place(folder, vendor=vendor, chip=chip)
        self.place.prepare()
        self.rounds: dict[str, Round] = {}
        self.compared: dict[str, Any] = {}
        self.failures: dict[str, str] = {}
        self.seconds: dict[str, float] = {}
        print(f"{chip}: {json.dumps(about_machine())}", flush=True)
        self._configure()

    def parts(self) -> dict[str, Callable[[float], None]]:
        """What is to be done, in order: name -> the work, which is told its limit in seconds."""
        wanted, cases = self.options.parts, self.options.cases
        rounds = [name for name in (GEMM, *cases) if name in wanted]
        numbers = cases if "numerics" in wanted else []
        return {
            **{name: partial(self._round, name) for name in rounds},
            **{f"numerics {name}": partial(self._numbers, name) for name in numbers},
        }

    def do(self, part: str, work: Callable[[float], None], limit_s: float) -> None:
        """One part; what goes wrong in it is its own failure."""
        begin = time.monotonic()
        try:
            work(limit_s)
            outcome = "done"
        except Exception as error:  # whatever it is: the other parts have their turn
            outcome = self.failures[part] = f"{type(error).__name__}: {error}"
        self.seconds[part] = time.monotonic() - begin
        print(f"{part}: {self.seconds[part]:.0f} s of {limit_s:.0f} s: {outcome}", flush=True)

    @property
    def exit_code(self) -> int:
        """1 where a part has no result, or its numbers are wrong."""
        rows = [row for each in self.compared.values() for row in each["precisions"].values()]
        return int(bool(self.failures) or not all(row["within"] for row in rows))

    def report(self, seconds: float) -> None:
        """Print the tables and a line of JSON, and write the tables where they were asked for."""
        tables = self._tables()
        print("", *(f"{table.text()}\n" for table in tables), report.NOTE, sep="\n")
        for part, reason in self.failures.items():
            print(f"NO RESULT: {part}: {reason}")
        if self.options.markdown:
            self.options.markdown.write_text(self._markdown(tables, seconds), encoding="utf-8")
        print(json.dumps(self._values(seconds)))

    def _configure(self) -> None:
        small, changes = self.options.small, self.options.changes
        own = GEMM_SMALL if small else GEMM_SETTINGS
        self.place.add_settings(GEMM, {**own, **changes.get(GEMM, {})})
        for name, case in TRAINING.items():
            accumulation = changes.get(name, {}).get("gradient_accumulation_steps")
            accumulation = accumulation or self.place.shipped(name, "gradient_accumulation_steps")
            settings = case.settings(small, accumulation)
            self.place.add_settings(name, {**settings, **changes.get(name, {})})

    def _round(self, name: str, limit_s: float) -> None:
        begin = time.monotonic()
        self._make_data(name)
        self.rounds[name] = self.place.run(name, limit_s - (time.monotonic() - begin))

    def _make_data(self, name: str) -> None:
        folder = self.place.data(name)
        if name in TRAINING and not folder.exists():
            folder.mkdir(parents=True)
            MAKERS[name](folder, TRAINING[name].amount(self.options.small))

    def _numbers(self, name: str, limit_s: float) -> None:
        self._make_data(name)
        place = self.place
        command = [sys.executable, str(NUMERICS), "--case", name, "--place", str(place.folder)]
        command += ["--vendor", place.vendor, "--chip", place.chip]
        command += ["--profile"] if self.options.profile else []
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s, check=False)
        except subprocess.TimeoutExpired:
            raise PartError(f"late: ended after {limit_s:.0f} s") from None
        if done.returncode:
            raise PartError(" | ".join(done.stderr.strip().splitlines()[-4:]))
        if self.options.profile:
            print(done.stdout, flush=True)
        else:
            self.compared[name] = json.loads(done.stdout.strip().splitlines()[-1])

    def _tables(self) -> list[report.Table]:
        gemm = self.rounds.get(GEMM)
        rates = report.gemm_rates(gemm)
        trained = [
            report.training_row(name, self.rounds[name], rates) for name in TRAINING if name in self.rounds
        ]
        numbers = [row for name, each in self.compared.items() for row in report.numerics_rows(name, each)]
        tables = [report.gemm_table(gemm, self._peaks())] if gemm else []
        if trained:
            tables.append(report.Table("Training", report.TRAINING_COLUMNS, trained))
        if numbers:
            heading = "One step against fp32 on the CPU: relative differences"
            tables.append(report.Table(heading, report.NUMERICS_COLUMNS, numbers))
        return tables

    def _peaks(self) -> dict[str, float | None]:
        return dict(_chips(self.place.vendor)[self.place.chip]["peak_flops"])

    def _markdown(self, tables: list[report.Table], seconds: float) -> str:
        about = ", ".join(f"{name} {value}" for name, value in about_machine().items())
        size = "small models" if self.options.small else "full size"
        words = [f"`benches/gpu.py`, {size}, {seconds:.0f} s: {about}. {report.NOTE}"]
        failed = [f"No result: {part}: {reason}" for part, reason in self.failures.items()]
        parts = [f"## On one {self.place.chip}", *words, *(table.markdown() for table in tables), *failed]
        return "\n\n".join(parts) + "\n"

    def _values(self, seconds: float) -> dict[str, Any]:
        rates = report.gemm_rates(self.rounds.get(GEMM))
        trained = {name: each for name, each in self.rounds.items() if name in TRAINING}
        return {
            "chip": self.place.chip,
            "machine": about_machine(),
            "small": self.options.small,
            "seconds": round(seconds, 1),
            "part_seconds": {part: round(taken, 1) for part, taken in self.seconds.items()},
            "gemm": rates,
            "training": {
                name: {
                    **{key: each.config.get(key) for key in SHOWN_SETTINGS},
                    **each.figures,
                    "steady": each.steady,
                    "of_gemm": report.part_of_gemm(each, rates),
                }
                for name, each in trained.items()
            },
            "numerics": self.compared,
            "notes": {name: each.notes for name, each in self.rounds.items()},
            "failures": self.failures,
        }


def nvidia_chip() -> str:
    """The chip of the first GPU.

    Raises:
        SystemExit: there is none, PyTorch cannot use it, or its peaks are not known.
    """
    if not torch.cuda.is_available():
        sys.exit(f"torch {torch.__version__} sees no CUDA device; without one: --device cpu --small")
    vendor = load_module(CHECKOUT / "nvidia" / "vendor.py", "gpu_bench_vendor")
    listed = subprocess.run(vendor.LIST_DEVICES_COMMAND, capture_output=True, text=True, check=False)
    lines = vendor.parse_device_list(listed.stdout)
    for name, chip in vendor.CHIPS.items():
        if lines and any(part in lines[0] for part in chip["device_names"]):
            return str(name)
    return sys.exit(
        f"{(lines or [listed.stderr.strip() or 'nvidia-smi shows no GPU'])[0]}: no chip of "
        f"{CHECKOUT / 'nvidia' / 'vendor.py'}\n    -> add it to CHIPS there, with its peaks and their source"
    )


def _chips(vendor: str) -> dict[str, Any]:
    chips: dict[str, Any] = load_module(CHECKOUT / vendor / "vendor.py", f"gpu_bench_{vendor}").CHIPS
    return chips


def about_machine() -> dict[str, str]:
    """What the figures are of: GPU and driver, PyTorch, Python."""
    about = {"python": platform.python_version(), "torch": torch.__version__}
    if torch.cuda.is_available():
        query = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
        shown = subprocess.run(query, capture_output=True, text=True, check=False)
        about |= {"gpu": shown.stdout.strip(), "cuda": str(torch.version.cuda)}
    return about
