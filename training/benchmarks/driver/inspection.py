"""What a vendor's hooks change of a task: model and optimizer before and after each, as far as it can be seen.

A hook may swap kernels: the same parameters, the same kind of optimizer with the same settings. Everything else is
noted as a difference, and what nobody can see from here as not checked. It makes no verdict: that is the controller's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from benchmarks.driver.hooks import Hooks

# Counted operations that differ by more than this are not of the same model.
FLOPS_TOLERANCE = 0.01
_MOST_NAMES = 3
# What a wrapper puts before the names of all parameters, and between them.
_WRAPPERS = ("module", "_layers", "_orig_mod")
_INNER_WRAPPERS = ("_orig_mod", "_checkpoint_wrapped_module")
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


@dataclass(frozen=True)
class Weight:
    """A parameter. checksum: of its values; dtype, shape: as it is held."""

    shape: tuple[int, ...]
    dtype: str
    trained: bool
    checksum: int

    @property
    def size(self) -> int:
        """Numbers in it."""
        size = 1
        for length in self.shape:
            size *= length
        return size


@dataclass(frozen=True)
class OptimizerFacts:
    """An optimizer.

    kind: its class. family: the rule of its step by name, e.g. `adamw`. settings: one mapping a tensor that it
    updates, with its `shape` and `dtype` and all that its step depends on.
    """

    kind: str
    family: str
    settings: tuple[Mapping[str, Any], ...]


class FrameworkFacts(Protocol):
    """What each framework's `facts.py` has."""

    def model_facts(self, model: Any) -> dict[str, Weight]:
        """Every parameter by name; one that stands in several places once."""

    def optimizer_facts(self, optimizer: Any) -> OptimizerFacts:
        """Of an optimizer, or of the one that a wrapper holds."""

    def shadow(self, model: Any) -> Any:
        """A copy without memory, in which a forward pass can be counted."""

    def forward_flops(self, shadow: Any, loss: Callable[[Any, Any], Any], inputs: Any) -> float:
        """Operations of the forward pass."""


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
        return self._model("convert_model", model, lambda: self.hooks.convert_model(config, model))

    def create_optimizer(self, config: Any, model: Any) -> Any:
        """The optimizer, compared with the driver's own."""
        if not self._is_vendors("create_optimizer"):
            return self.hooks.create_optimizer(config, model)
        before = self.facts.model_facts(model)
        optimizer = self.hooks.create_optimizer(config, model)
        self._note("create_optimizer", model_differences(before, self.facts.model_facts(model)))
        own = self.facts.optimizer_facts(self.hooks.own.create_optimizer(config, model))
        self._note("create_optimizer", optimizer_differences(own, self.facts.optimizer_facts(optimizer)))
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
        """Compare the forward pass of the case's model with that of the hooks', on a micro-batch.

        Args:
            declared: training FLOPs of the micro-batch as the case counts them, padding left out.
        """
        if not self._is_vendors("convert_model", "model_to_fp16"):
            return
        hook = next(name for name in ("convert_model", "model_to_fp16") if name in self.hooks.in_force)
        try:
            if self._shadow is None:
                raise NotCountableError(self._no_shadow)
            case = self.facts.forward_flops(self._shadow, loss, inputs)
            vendor = self.facts.forward_flops(self.facts.shadow(model), loss, inputs)
        except NotCountableError as error:
            self.unchecked.append(f"{hook}: model FLOPs: {error}")
            return
        finally:
            self._shadow = None
        self.flops = {"forward_of_case": case, "forward_of_vendor": vendor}
        if declared is not None:
            self.flops["training_declared"] = declared
        if abs(vendor - case) > FLOPS_TOLERANCE * case:
            self._note(hook, [("forward FLOPs of a micro-batch", f"{case:.4g}", f"{vendor:.4g}")])

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


def family_of(optimizer: object, *, decoupled: bool) -> str:
    """The rule of an optimizer's step by the name of its class.

    Args:
        decoupled: a setting says of an Adam that it is an AdamW; that of Apex and DeepSpeed is an attribute.
    """
    name = type(optimizer).__name__.lower()
    if "adam" not in name:
        return "lamb" if "lamb" in name else name
    return "adamw" if "adamw" in name or decoupled or getattr(optimizer, "adam_w_mode", False) else "adam"


def model_differences(
    before: Mapping[str, Weight], after: Mapping[str, Weight]
) -> list[tuple[str, str, str]]:
    """(what, as it was, as it is) of a model's parameters; wrappers' parts of the names do not count."""
    case, vendor = _unwrapped(before), _unwrapped(after)
    shared = [name for name in case if name in vendor]
    differences = []
    if len(shared) < max(len(case), len(vendor)):
        lost = [name for name in case if name not in vendor]
        new = [name for name in vendor if name not in case]
        parts = [f"without {_listed(lost)}"] * bool(lost) + [f"with {_listed(new)}"] * bool(new)
        differences.append(("parameters", _amount(case), f"{_amount(vendor)}: {', '.join(parts)}"))
    for what, attribute in (("shape", "shape"), ("whether it is trained", "trained")):
        names = [n for n in shared if getattr(case[n], attribute) != getattr(vendor[n], attribute)]
        if names:
            was, now = (str(getattr(side[names[0]], attribute)) for side in (case, vendor))
            differences.append((f"{what} of {_listed(names)}", was, now))
    alike = [n for n in shared if (case[n].shape, case[n].dtype) == (vendor[n].shape, vendor[n].dtype)]
    names = [name for name in alike if case[name].checksum != vendor[name].checksum]
    if names:
        differences.append((f"initial values of {_listed(names)}", "as the case has them", "others"))
    return differences


def optimizer_differences(case: OptimizerFacts, vendor: OptimizerFacts) -> list[tuple[str, str, str]]:
    """(what, as the driver makes it, as it is) of an optimizer."""
    differences = []
    if case.family != vendor.family:
        differences.append(("optimizer", f"{case.family} ({case.kind})", f"{vendor.family} ({vendor.kind})"))
    for name in dict.fromkeys(name for settings in (*case.settings, *vendor.settings) for name in settings):
        own, other = (_values(facts.settings, name) for facts in (case, vendor))
        if own != other:
            differences.append((f"optimizer's {name}", _counted(own), _counted(other)))
    return differences


def _values(settings: Sequence[Mapping[str, Any]], name: str) -> Counter[tuple[Any, Any]]:
    """How many tensors of a shape have a value: copies of the weights have no names to go by."""
    return Counter((each.get("shape"), each.get(name)) for each in settings)


def _counted(values: Counter[tuple[Any, Any]]) -> str:
    """`0.01 (of 3 tensors), 0.0 (of 5)`."""
    amounts: Counter[Any] = Counter()
    for (_, value), number in values.items():
        amounts[value] += number
    shown = [f"{value} (of {number})" for value, number in amounts.most_common(_MOST_NAMES)]
    return ", ".join(shown + ["..."] * (len(amounts) > _MOST_NAMES)) or "of no tensor"


def _unwrapped(weights: Mapping[str, Weight]) -> dict[str, Weight]:
    paths = {
        tuple(part for part in name.split(".") if part not in _INNER_WRAPPERS): w
        for name, w in weights.items()
    }
    while paths and all(len(path) > 1 and path[0] in _WRAPPERS for path in paths):
        paths = {path[1:]: weight for path, weight in paths.items()}
    return {".".join(path): weight for path, weight in paths.items()}


def _amount(weights: Mapping[str, Weight]) -> str:
    return f"{len(weights)} tensors of {sum(weight.size for weight in weights.values())} numbers"


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
