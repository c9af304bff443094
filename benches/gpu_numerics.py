"""One training step on a device against the same step on the CPU in fp32; benches/gpu.py calls this, a process a case.

    python benches/gpu_numerics.py --case bert --place FOLDER --vendor nvidia --chip H100 [--profile]

Same random weights, same batch, no dropout. On a GPU a batch is laid out otherwise than on the CPU (ragged, with
other attention kernels), so that this compares the whole path and not the products alone. The last line is JSON.
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "training"))

import torch
from gpu_cases import TOLERANCES, TRAINING, TrainingCase
from gpu_rounds import FRAMEWORK, Place
from torch import Tensor, nn

from benchmarks.driver.arguments import LaunchArguments
from benchmarks.driver.configuration import read_configuration
from benchmarks.driver.extern import case_class
from benchmarks.driver.pytorch import start
from benchmarks.driver.pytorch.engine import PytorchEngine
from benchmarks.driver.ranks import RankEnvironment
from benchmarks.driver.start import start_engine
from benchmarks.driver.vendor_facts import VendorFacts, read_vendor_facts

REFERENCE = "fp32"
LOSS_SCALE = 2.0**10  # of fp16: the driver's scaler begins higher, and skips steps until its scale fits
PROFILED_STEPS = 3


@dataclass(frozen=True)
class StepNumbers:
    """Of one step: the loss in nats, the gradient of each parameter on the host, in fp32; how it was computed."""

    loss: float
    gradients: Mapping[str, Tensor]
    precision: str = REFERENCE

    @property
    def norm(self) -> float:
        """Of all gradients together."""
        return _norm(self.gradients.values())

    def differences(self, reference: StepNumbers) -> dict[str, float]:
        """From `reference`, each as a part of its value there; the fields of a Tolerance."""
        apart = [gradient - reference.gradients[name] for name, gradient in self.gradients.items()]
        return {
            "loss": abs(self.loss - reference.loss) / abs(reference.loss),
            "norm": abs(self.norm - reference.norm) / reference.norm,
            "gradients": _norm(apart) / reference.norm,
        }


class ObservedEngine(PytorchEngine):
    """The driver's engine, which keeps a step's gradients in place of using them."""

    gradients: Mapping[str, Tensor]

    def _update_weights(self) -> None:
        if self.scaler is not None:
            self.scaler.unscale_(self.optimizer)
        self.gradients = {
            name: parameter.grad.float().cpu()
            for name, parameter in self.module.named_parameters()
            if parameter.grad is not None
        }
        self.optimizer.zero_grad(set_to_none=True)


class Bench:
    """A case with the configuration and the data that its round had."""

    def __init__(self, case: TrainingCase, place: Place) -> None:
        self.case, self.place = case, place
        self.folder = place.training / "benchmarks" / case.name / FRAMEWORK
        self.task_class = case_class(self.folder)
        self._model: nn.Module | None = None

    def engine(self, kind: type[PytorchEngine], device_type: str, changes: Mapping[str, Any]) -> Any:
        """One rank of it, started as the driver does, with `changes`; all begin with the same weights."""
        file = self.place.config_file(self.case.name)
        arguments = LaunchArguments(
            case_dir=self.folder,
            data_dir=self.place.data(self.case.name),
            vendor=self.place.vendor,
            extern_config_dir=file.parent,
            extern_config_file=file.name,
            enable_extern_config=True,
            overrides=dict(changes),
        )
        parts = {name: getattr(start, name) for name in start.__all__}
        framework = SimpleNamespace(**{**parts, "TrainingEngine": kind})
        config = read_configuration(arguments, self.case.metric)
        facts = VendorFacts(device_type, "gloo", ragged_attention=device_type == "cuda")
        return start_engine(framework, self._task, config, arguments, RankEnvironment(), facts)

    def _task(self, context: Any) -> Any:
        task = self.task_class(context)
        task.build_model = lambda build=task.build_model: self._same_model(build)
        return task

    def step_numbers(self, device_type: str, precision: str | None = None) -> StepNumbers:
        """One step on the device; in the configured precision, unless one is given."""
        changes = {
            **({"precision": precision} if precision else {}),
            "train_batch_size": self.case.compared,
            "gradient_accumulation_steps": 1,
            **dict.fromkeys(self.case.dropouts, 0.0),
        }
        engine: ObservedEngine = self.engine(ObservedEngine, device_type, changes)
        if engine.scaler is not None:
            engine.scaler = torch.amp.GradScaler(device_type, init_scale=LOSS_SCALE)
        engine.train_step(next(engine.training_steps()), 0.0)
        return StepNumbers(engine.loss(), engine.gradients, engine.settings.precision)

    def _same_model(self, build: Any) -> nn.Module:
        """Drawn once: random weights of a large model take longer than its step."""
        if self._model is None:
            self._model = build()
        return copy.deepcopy(self._model)


def _norm(tensors: Any) -> float:
    """Of all together, summed up in fp64."""
    return math.sqrt(sum(float(tensor.double().square().sum()) for tensor in tensors))


def compared(bench: Bench, device_type: str) -> dict[str, Any]:
    """The differences in the configuration's precision and in fp32, with their tolerances."""
    reference = bench.step_numbers("cpu", REFERENCE)
    rows = {}
    for precision in (None, REFERENCE):
        try:
            step = bench.step_numbers(device_type, precision)
        except RuntimeError as error:  # no kernel for it, no memory: the other one is still worth knowing
            lost = dict.fromkeys(asdict(TOLERANCES[REFERENCE]))
            reason = str(error).strip().partition("\n")[0]
            rows[precision or "configured"] = {
                "differences": lost,
                "tolerance": lost,
                "within": False,
                "error": reason,
            }
            continue
        rows[step.precision] = _row(step, reference)
    return {"loss": reference.loss, "gradient_norm": reference.norm, "precisions": rows}


def _row(step: StepNumbers, reference: StepNumbers) -> dict[str, Any]:
    differences, tolerance = step.differences(reference), asdict(TOLERANCES[step.precision])
    # NaN, which JSON has not, is within nothing
    within = all(differences[name] <= tolerance[name] for name in tolerance)
    finite = {name: value if math.isfinite(value) else None for name, value in differences.items()}
    return {"differences": finite, "tolerance": tolerance, "within": within}


def profile(bench: Bench, device_type: str) -> str:
    """Where the device's time goes in steps as the configuration has them: a table."""
    engine: PytorchEngine = bench.engine(PytorchEngine, device_type, {})
    steps = engine.training_steps()
    for _ in range(PROFILED_STEPS):
        engine.train_step(next(steps), 0.0)
    engine.loss()
    on_device = device_type == "cuda"
    kinds = torch.profiler.ProfilerActivity
    ready = [next(steps) for _ in range(PROFILED_STEPS)]
    with torch.profiler.profile(activities=[kinds.CPU, *([kinds.CUDA] if on_device else [])]) as profiler:
        for step in ready:
            engine.train_step(step, 0.0)
        engine.loss()
    order = f"self_{'cuda' if on_device else 'cpu'}_time_total"
    table: str = profiler.key_averages().table(sort_by=order, row_limit=40, max_name_column_width=90)
    return table


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--case", choices=TRAINING, required=True)
    parser.add_argument("--place", type=Path, required=True, help="the folder that gpu.py works in")
    parser.add_argument("--vendor", required=True)
    parser.add_argument("--chip", required=True)
    parser.add_argument("--profile", action="store_true", help="show where the time of a step goes instead")
    arguments = parser.parse_args()
    bench = Bench(
        TRAINING[arguments.case], Place(arguments.place, vendor=arguments.vendor, chip=arguments.chip)
    )
    device_type = read_vendor_facts(arguments.vendor, FRAMEWORK, bench.place.training).device_type
    if arguments.profile:
        print(profile(bench, device_type))
        return 0
    print(json.dumps(compared(bench, device_type)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
