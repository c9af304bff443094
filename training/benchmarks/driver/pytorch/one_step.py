"""One training step of a case on a device against the same step on the CPU in fp32.

    python3 -m benchmarks.driver.pytorch.one_step --case_dir DIR --data_dir DIR --vendor VENDOR
        --extern_config_dir DIR --extern_config_file FILE --enable_extern_config [--NAME VALUE]...

with the launch contract's arguments; those that it does not know change the configuration, as in a training: sizes,
and dropout rates of 0, which would differ. Same random weights, same batch. A batch may be laid out otherwise than on
the CPU (ragged, with other attention kernels), so that this compares the whole path and not the products alone. The
last line is JSON; exit code 1 where a difference is beyond its tolerance.
"""

from __future__ import annotations

import copy
import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.driver.arguments import LaunchArguments, parse_arguments
from benchmarks.driver.configuration import read_configuration
from benchmarks.driver.extern import case_class
from benchmarks.driver.pytorch import start
from benchmarks.driver.pytorch.engine import PytorchEngine
from benchmarks.driver.ranks import RankEnvironment
from benchmarks.driver.start import start_engine
from benchmarks.driver.vendor_facts import PLAIN_CPU, VendorFacts, read_vendor_facts

REFERENCE = "fp32"
LOSS_SCALE = 2.0**10  # of fp16: the driver's scaler begins higher, and skips steps until its scale fits


@dataclass(frozen=True)
class Tolerance:
    """Largest differences from the CPU's fp32, each as a part of the CPU's value.

    Attributes:
        loss: of the step's loss.
        norm: of the norm of all gradients together.
        gradients: the norm of the difference of all gradients.
    """

    loss: float
    norm: float
    gradients: float


# fp32: another order of the same sums. Mixed precision: factors rounded to 8 bits (bf16) or 11 (fp16), errors that
# add up at random over the layers; a wrong kernel is off by the order of 1.
TOLERANCES = {
    "fp32": Tolerance(1e-4, 1e-3, 5e-3),
    "fp16": Tolerance(5e-3, 1e-2, 3e-2),
    "bf16": Tolerance(1e-2, 3e-2, 1e-1),
}


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


class Trainer:
    """One rank of a case, started as the driver does, as often as it is asked for; always with the same weights."""

    def __init__(self, arguments: LaunchArguments) -> None:
        self.arguments = arguments
        self._class = case_class(arguments.case_dir)
        self._model: nn.Module | None = None

    def engine(self, kind: type[PytorchEngine], facts: VendorFacts, changes: Mapping[str, Any]) -> Any:
        """Its engine on a device of `facts`, with `changes` of the configuration."""
        arguments = replace(self.arguments, overrides={**self.arguments.overrides, **changes})
        parts = {name: getattr(start, name) for name in start.__all__}
        framework = SimpleNamespace(**{**parts, "TrainingEngine": kind})
        config = read_configuration(arguments, self._class.metric)
        return start_engine(framework, self._task, config, arguments, RankEnvironment(), facts)

    def step_numbers(self, facts: VendorFacts, precision: str | None = None) -> StepNumbers:
        """One step on the device; in the configured precision, unless one is given."""
        changes = {"gradient_accumulation_steps": 1, **({"precision": precision} if precision else {})}
        engine: ObservedEngine = self.engine(ObservedEngine, facts, changes)
        if engine.scaler is not None:
            engine.scaler = torch.amp.GradScaler(facts.device_type, init_scale=LOSS_SCALE)
        engine.train_step(next(engine.training_steps()), 0.0)
        return StepNumbers(engine.loss(), engine.gradients, engine.settings.precision)

    def _task(self, context: Any) -> Any:
        task = self._class(context)
        task.build_model = lambda build=task.build_model: self._same_model(build)
        return task

    def _same_model(self, build: Any) -> nn.Module:
        """Drawn once: random weights of a large model take longer than its step."""
        if self._model is None:
            self._model = build()
        return copy.deepcopy(self._model)


def compared(trainer: Trainer, facts: VendorFacts) -> dict[str, Any]:
    """The differences in the configuration's precision and in fp32, with their tolerances."""
    reference = trainer.step_numbers(PLAIN_CPU, REFERENCE)
    rows = {}
    for precision in (None, REFERENCE):
        try:
            step = trainer.step_numbers(facts, precision)
        except RuntimeError as error:  # no kernel for it, no memory: the other one is still worth knowing
            rows[precision or "configured"] = _lost(error)
            continue
        rows[step.precision] = _row(step, reference)
    return {"loss": reference.loss, "gradient_norm": reference.norm, "precisions": rows}


def _lost(error: RuntimeError) -> dict[str, Any]:
    lost = dict.fromkeys(asdict(TOLERANCES[REFERENCE]))
    reason = str(error).strip().partition("\n")[0]
    return {"differences": lost, "tolerance": lost, "within": False, "error": reason}


def _row(step: StepNumbers, reference: StepNumbers) -> dict[str, Any]:
    differences, tolerance = step.differences(reference), asdict(TOLERANCES[step.precision])
    # NaN, which JSON has not, is within nothing
    within = all(differences[name] <= tolerance[name] for name in tolerance)
    finite = {name: value if math.isfinite(value) else None for name, value in differences.items()}
    return {"differences": finite, "tolerance": tolerance, "within": within}


def _norm(tensors: Iterable[Tensor]) -> float:
    """Of all together, summed up in fp64."""
    return math.sqrt(sum(float(tensor.double().square().sum()) for tensor in tensors))


def main(words: Sequence[str]) -> int:
    """Compare, and print it."""
    arguments = parse_arguments(words)
    facts = read_vendor_facts(arguments.vendor, arguments.framework)
    result = compared(Trainer(arguments), facts)
    print(json.dumps(result), flush=True)
    return int(not all(row["within"] for row in result["precisions"].values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
