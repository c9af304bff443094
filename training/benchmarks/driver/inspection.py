"""What a vendor's hooks change of a task: model and optimizer before and after each, as far as it can be seen.

A hook may swap kernels: the same parameters, the same kind of optimizer with the same settings. Everything else is
noted as a difference, and what nobody can see from here as not checked. It makes no verdict: that is the controller's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from benchmarks.driver.differences import OptimizerFacts, Weight, model_differences, optimizer_differences
from benchmarks.driver.hooks import Hooks

# Counted operations that differ by more than this are not of the same model.
FLOPS_TOLERANCE = 0.01
_NO_HOOK_IS_CALLED = "the case measures, no hook is called"
NOT_SEEN = {
    "convert_model": "that the model computes the same function",
    "create_optimizer": "that the optimizer's step is the one of its name",
    "model_to_fp16": "that the model computes the same function",
    "model_to_ddp": "that gradients are averaged over all ranks",
    "create_grad_scaler": "how gradients are scaled, and which steps are left out",
    "backward": "that the gradients are those of the loss",
}


class NotCountableError(Exception):
    """The operations of a forward pass cannot be counted here; says why."""


class FrameworkFacts(Protocol):
    """What each framework's `facts.py` has."""

    def model_facts(self, model: Any) -> dict[str, Weight]:
        """Every parameter by name; one that stands in several places once."""

    def optimizer_facts(self, optimizer: Any) -> OptimizerFacts:
        """Of an optimizer, or of the one that a wrapper holds."""

    def shadow(self, model: Any) -> Any:
        """A copy without memory, in which a forward pass can be counted."""

    def forward_flops(
        self, shadow: Any, loss: Callable[[Any, Any], Any], inputs: Any, *, training: bool
    ) -> float:
        """Operations of the forward pass, in training or in evaluation; random states stay as they are."""


@dataclass(frozen=True)
class Difference:
    """What a hook changed: `what` was `case` and is `vendor`."""

    hook: str
    what: str
    case: str
    vendor: str


@dataclass
class Inspector:
    """Calls the hooks, and notes what those of the vendor changed."""

    hooks: Hooks
    facts: FrameworkFacts
    differences: list[Difference] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)
    flops: dict[str, float] = field(default_factory=dict)
    _own_optimizer: OptimizerFacts | None = None
    _shadow: Any = None
    _no_shadow: str = ""

    def __post_init__(self) -> None:
        self.unchecked += [f"{name}: {NOT_SEEN[name]}" for name in self.hooks.in_force]
        if self.hooks.files:
            self.unchecked.append(
                "what the code of extern/ does besides, in the process that it shares with the driver"
            )

    def convert_model(self, config: Any, model: Any) -> Any:
        """The model as the hook makes it of the case's."""
        if self._is_vendors("convert_model", "model_to_fp16"):
            self._keep_shadow(model)
        if self._is_vendors("create_optimizer"):  # of the case's model: a hook's may be of another dtype
            self._own_optimizer = self.facts.optimizer_facts(self.hooks.own.create_optimizer(config, model))
        return self._model("convert_model", model, lambda: self.hooks.convert_model(config, model))

    def create_optimizer(self, config: Any, model: Any) -> Any:
        """The optimizer, compared with the driver's own of the model that `convert_model` was given."""
        if self._own_optimizer is None:
            return self.hooks.create_optimizer(config, model)
        before = self.facts.model_facts(model)
        optimizer = self.hooks.create_optimizer(config, model)
        self._note("create_optimizer", model_differences(before, self.facts.model_facts(model)))
        after = self.facts.optimizer_facts(optimizer)
        self._note("create_optimizer", optimizer_differences(self._own_optimizer, after))
        return optimizer

    def model_to_fp16(self, config: Any, model: Any, optimizer: Any) -> tuple[Any, Any]:
        """Model and optimizer, both compared with what they were."""
        if not self._is_vendors("model_to_fp16"):
            pair: tuple[Any, Any] = self.hooks.model_to_fp16(config, model, optimizer)
            return pair
        before, optimizer_before = self.facts.model_facts(model), self.facts.optimizer_facts(optimizer)
        model, optimizer = self.hooks.model_to_fp16(config, model, optimizer)
        self._note("model_to_fp16", model_differences(before, self.facts.model_facts(model)))
        after = self.facts.optimizer_facts(optimizer)
        self._note("model_to_fp16", optimizer_differences(optimizer_before, after))
        return model, optimizer

    def model_to_ddp(self, config: Any, model: Any) -> Any:
        """The wrapped model."""
        return self._model("model_to_ddp", model, lambda: self.hooks.model_to_ddp(config, model))

    def count_flops(
        self, model: Any, loss: Callable[[Any, Any], Any], inputs: Any, declared: float | None
    ) -> None:
        """Compare the forward passes of the case's model with those of the hooks', on a micro-batch.

        Args:
            declared: training FLOPs of the micro-batch as the case counts them, padding left out.
        """
        if not self._is_vendors("convert_model", "model_to_fp16"):
            return
        hook = next(name for name in ("convert_model", "model_to_fp16") if name in self.hooks.in_force)
        try:
            if self._shadow is None:
                raise NotCountableError(self._no_shadow)
            shadows = self._shadow, self.facts.shadow(model)
        except NotCountableError as error:
            self.unchecked.append(f"{hook}: model FLOPs: {error}")
            return
        finally:
            self._shadow = None
        for mode in ("training", "evaluation"):
            try:
                case, vendor = (
                    self.facts.forward_flops(each, loss, inputs, training=mode == "training")
                    for each in shadows
                )
            except NotCountableError as error:
                self.unchecked.append(f"{hook}: model FLOPs in {mode}: {error}")
            else:
                self._compare_flops(hook, mode, case, vendor)
        if self.flops and declared is not None:
            self.flops["training_declared"] = declared

    def as_dict(self) -> dict[str, Any]:
        """As it stands in the HOOKS event."""
        return {
            "in_force": dict(self.hooks.in_force),
            "files": dict(self.hooks.files),
            "differs": [asdict(each) for each in self.differences],
            "unchecked": list(self.unchecked),
            "flops": dict(self.flops),
        }

    def _model(self, hook: str, model: Any, call: Callable[[], Any]) -> Any:
        if not self._is_vendors(hook):
            return call()
        before = self.facts.model_facts(model)
        after = call()
        self._note(hook, model_differences(before, self.facts.model_facts(after)))
        return after

    def _compare_flops(self, hook: str, mode: str, case: float, vendor: float) -> None:
        self.flops |= {f"forward_of_case_in_{mode}": case, f"forward_of_vendor_in_{mode}": vendor}
        if abs(vendor - case) > FLOPS_TOLERANCE * case:
            what = f"forward FLOPs of a micro-batch in {mode}"
            self._note(hook, [(what, f"{case:.4g}", f"{vendor:.4g}")])

    def _keep_shadow(self, model: Any) -> None:
        try:
            self._shadow = self.facts.shadow(model)
        except NotCountableError as error:
            self._no_shadow = str(error)  # `count_flops` says so

    def _is_vendors(self, *names: str) -> bool:
        return any(name in self.hooks.in_force for name in names)

    def _note(self, hook: str, differences: Iterable[tuple[str, str, str]]) -> None:
        self.differences += [Difference(hook, *each) for each in differences]


def never_called(hooks: Hooks) -> dict[str, Any]:
    """The HOOKS event of a case that measures: hooks reach training alone, but the vendor's code is loaded."""
    unchecked = (
        [f"what the code of extern/ does when it is loaded; {_NO_HOOK_IS_CALLED}"] if hooks.files else []
    )
    return {"in_force": {}, "files": dict(hooks.files), "differs": [], "unchecked": unchecked, "flops": {}}


def hooks_of_all_ranks(reports: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Rank 0's report with what others report besides: a hook may do another thing on another rank."""
    first = reports[0]
    differs = list(first["differs"])
    for rank, report in enumerate(reports):
        for name in ("in_force", "files"):
            if report[name] != first[name]:
                differs.append(
                    asdict(
                        Difference("extern/", f"{name} on rank {rank}", str(first[name]), str(report[name]))
                    )
                )
        seen = {(each["hook"], each["what"]) for each in differs}
        new = [each for each in report["differs"] if (each["hook"], each["what"]) not in seen]
        differs += [{**each, "what": f"{each['what']} on rank {rank}"} for each in new]
    return {**first, "differs": differs}
