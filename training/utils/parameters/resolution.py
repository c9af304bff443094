"""The layered configuration: command line over vendor file over the case's `_base.py` over the driver's settings.

Only names that a lower layer has may be set: a misspelt name is an error, not a new setting. The controller
resolves a case's files before anything is launched, and every rank does when it starts: with this function.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import reduce
from typing import Any

from utils.errors import Problem, ProblemsError, nearest
from utils.parameters.search import search_bounds, search_conflicts
from utils.parameters.settings import (
    EVAL_INTERVALS,
    KINDS,
    ONLY_IN_FRAMEWORK,
    MeasurementSettings,
    TrainingSettings,
    out_of_bounds,
    precisions_of,
    seed_of_round,
)

KIND = "case_kind"
# Whatever the case: they are about what becomes of a run that is cut off, and leave the task as it is.
ALWAYS_MUTABLE = ("save_steps",)
TARGET = "target_"
# What no case that measures sets.
_TRAINING_ALONE = {field.name for field in fields(TrainingSettings)} - {
    field.name for field in fields(MeasurementSettings)
}


class _Unknown:
    """The value of a setting that only the image can tell; it passes every check of values."""

    def __repr__(self) -> str:
        return "(made by code that only the image can run)"


UNKNOWN = _Unknown()


@dataclass(frozen=True)
class Layer:
    """Values of one source: a file's path or `command line`. `where` says on which line a name stands."""

    source: str
    values: Mapping[str, Any]
    where: Callable[[str], str] | None = None

    def problem(self, name: str, message: str, remedy: str) -> Problem:
        """One thing that is wrong with the value of `name`."""
        value = repr(self.values[name]) if name in self.values else ""
        return Problem(self.where(name) if self.where else self.source, name, value, message, remedy)


@dataclass(frozen=True)
class Configuration:
    """The resolved parameters.

    `settings` are the driver's, of the case's kind; `case` the other names of the case's `_base.py`; `metric`
    what its target is of, empty for none. `changed` lists the names that the vendor or the command line changed
    although the case does not list them as mutable (a result with any is *open*, else *closed*).
    `precision_reason` is why the precision is what AUTO came to; empty where it was named, or is not settled yet.
    """

    settings: TrainingSettings | MeasurementSettings
    case: Mapping[str, Any]
    changed: tuple[str, ...]
    metric: str = ""
    precision_reason: str = ""

    @property
    def kind(self) -> str:
        """What the case is for: one of KINDS."""
        return self.settings.kind

    @property
    def driver(self) -> TrainingSettings:
        """The settings of a case that trains."""
        assert isinstance(self.settings, TrainingSettings), "the case does not train"  # noqa: S101 - for mypy
        return self.settings

    @property
    def measurement(self) -> MeasurementSettings:
        """The settings of a case that measures."""
        assert isinstance(self.settings, MeasurementSettings), "the case does not measure"  # noqa: S101 - for mypy
        return self.settings

    def of_round(self, number: int) -> Configuration:
        """The parameters of a round of the case, counted from 1: where they ask for it each has a seed of its own."""
        if not isinstance(self.settings, TrainingSettings):
            return self
        seed = seed_of_round(self.settings.seed, self.settings.seed_step, number)
        return replace(self, settings=replace(self.settings, seed=seed))

    def as_dict(self) -> dict[str, Any]:
        """All parameters as plain data."""
        return {**asdict(self.settings), **self.case}


def resolve(
    base: Layer,
    above: Sequence[Layer] = (),
    *,
    mutable: Sequence[str] = (),
    framework: str = "",
    device_type: str = "",
) -> Configuration:
    """Lay `above` (lowest first) over `base`, the case's own, over the driver's settings.

    Args:
        mutable: the names that a vendor may set otherwise than the case.
        framework: the case's; what its engine does not do is refused.
        device_type: the vendor's; what the framework does not do on it is refused. Empty: it is not known.

    Raises:
        ProblemsError: an unknown name, a wrong type or an impossible value, all of them at once.
    """
    check = _Check(base, above, framework, device_type)
    if problems := list(check.problems()):
        raise ProblemsError(problems)
    values = check.values
    free = {*mutable, *ALWAYS_MUTABLE}
    return Configuration(
        settings=check.settings(**{name: values[name] for name in check.fields}),
        case={name: value for name, value in values.items() if name not in check.fields},
        changed=tuple(sorted(n for n in values if values[n] != check.task[n] and n not in free)),
        metric=check.metric,
    )


class _Check:
    """The layers of one case, and what is wrong with them.

    values: what all layers make of the settings, as far as it is known here; task: what the case alone does.
    """

    def __init__(self, base: Layer, above: Sequence[Layer], framework: str, device_type: str) -> None:
        self.base = base
        self.only = ONLY_IN_FRAMEWORK.get(framework, {})
        self.place = f"{framework} on {device_type}".strip()
        self.precisions = precisions_of(framework, device_type)
        self.above = above
        self.settings = KINDS.get(str(base.values.get(KIND)), TrainingSettings)
        self.fields = {field.name: field for field in fields(self.settings)}
        self.of_search = search_bounds(base.values)
        trains = self.settings is TrainingSettings
        self.targets = [name for name in base.values if trains and name.startswith(TARGET)]
        self.metric = self.targets[0].removeprefix(TARGET) if self.targets else ""
        # what may be set: the driver's settings and the names of `_base.py`
        self.names = {*self.fields, *map(self._own_name, base.values)} - {KIND}
        self.task = self._over(asdict(self.settings()), base)
        self.values = reduce(self._over, above, self.task)

    def _own_name(self, name: str) -> str:
        """`target` for the name that the case gives it, `target_<metric>`."""
        return "target" if self.targets and name == self.targets[0] else name

    def _over(self, below: dict[str, Any], layer: Layer) -> dict[str, Any]:
        named = {self._own_name(name): value for name, value in layer.values.items() if value is not UNKNOWN}
        return {**below, **{name: self._as_float(name, named[name]) for name in named if name in self.names}}

    def _as_float(self, name: str, value: Any) -> Any:
        return float(value) if type(value) is int and self._type(name).startswith("float") else value

    def problems(self) -> Iterator[Problem]:
        """Everything that is wrong, each where it stands."""
        if not self.base.values.keys() & {KIND, *_TRAINING_ALONE, *self.targets}:
            message = "is missing: without it a case trains, and nothing here is of a case that trains"
            remedy = f'write {KIND} = "{MeasurementSettings.kind}", or what a case that trains has: '
            remedy += f"{TARGET}<metric>, max_steps, {EVAL_INTERVALS[0]}, ..."
            yield self.base.problem(KIND, message, remedy)
            return  # all else that could be said is of a kind that is not meant
        yield from self._kind_problems()
        if self.settings is TrainingSettings:
            yield from self._missing()
        for name in self.targets[1:]:
            remedy = f"rename one: {TARGET}<metric> is the name of the case's target"
            yield self.base.problem(name, f"stands beside {self.targets[0]}", remedy)
        wrong = [problem for layer in (self.base, *self.above) for problem in self._of_layer(layer)]
        yield from wrong
        yield from self._conflicts({problem.name for problem in wrong})

    def _missing(self) -> Iterator[Problem]:
        """What a case that trains must say: it has no default."""
        if not self.targets and "target" not in self.base.values:
            message = "is missing: a case that trains has a target"
            remedy = f"write {TARGET}<metric> = ..., with the metric that case.py names; larger is better. "
            remedy += f'A case that measures has {KIND} = "{MeasurementSettings.kind}" and none'
            yield self.base.problem(f"{TARGET}<metric>", message, remedy)
        if not any(name in layer.values for layer in (self.base, *self.above) for name in EVAL_INTERVALS):
            message = "is missing: nothing says when it is evaluated"
            remedy = f"write {' or '.join(EVAL_INTERVALS)}; None means: after the last step alone"
            yield self.base.problem(EVAL_INTERVALS[0], message, remedy)

    def _kind_problems(self) -> Iterator[Problem]:
        if self.base.values.get(KIND, TrainingSettings.kind) not in tuple(KINDS):
            yield self.base.problem(KIND, "is no kind of case", f"choose one of {', '.join(KINDS)}")
        for layer in self.above:
            if KIND in layer.values:
                yield layer.problem(KIND, f"is the case's own word ({self.base.source})", "remove it")

    def _of_layer(self, layer: Layer) -> Iterator[Problem]:
        for written, value in layer.values.items():
            name = self._own_name(written)
            if name == KIND or value is UNKNOWN:
                continue
            if name not in self.names:
                hint = nearest(written, [*self.names, *self.targets])
                listed = ", ".join(self.base.values)
                remedy = hint or f"remove it, or add it to {self.base.source}, which has {listed}"
                yield layer.problem(written, f"is no parameter of the case ({self.base.source})", remedy)
            elif not _fits(value, wanted := self._type(name)):
                message = f"has the wrong type: it is {type(value).__name__}, not {wanted}"
                yield layer.problem(written, message, f"write a value of type {wanted}")
            elif not _is_finite(value):
                or_none = "; None means: do not clip" if name == "max_grad_norm" else ""
                yield layer.problem(written, "is not finite", f"write a finite number{or_none}")
            elif value not in (values := self.only.get(name, (value,))):
                listed = " or ".join(map(repr, values))
                yield layer.problem(written, "is not what the case's framework has", f"write {listed}")
            elif remedy := out_of_bounds(value, self.fields.get(name) or self.of_search.get(name)):
                yield layer.problem(written, "cannot be had", remedy)

    def _type(self, name: str) -> str:
        """As it stands in the settings; of a case's own name the type of the value in its `_base.py`."""
        if name in self.fields:
            return str(self.fields[name].type)
        value = self.base.values.get(name)
        return "" if value is None or value is UNKNOWN else type(value).__name__

    def _conflicts(self, wrong: set[str]) -> Iterator[Problem]:
        """Of a setting that is `wrong` by itself, or whose value is not known here, no more can be said."""
        layers = (*reversed(self.above), self.base)
        unclear = wrong | {
            name for layer in layers for name, value in layer.values.items() if value is UNKNOWN
        }
        defaults = asdict(self.settings())
        comparable = {**self.values, **{name: defaults[name] for name in unclear & defaults.keys()}}
        yield from self._precision_problems(comparable.get("precision"), layers)
        of_search = search_conflicts(comparable) if self.of_search else ()
        for names, message, remedy in (*self.settings.conflicts(comparable), *of_search):
            if not unclear & set(names):
                layer = next((layer for layer in layers if names[0] in layer.values), self.base)
                yield layer.problem(names[0], message, remedy)

    def _precision_problems(self, precision: Any, layers: Sequence[Layer]) -> Iterator[Problem]:
        """The one that is in force; what the case says may be meant for another device."""
        computes = self.settings is TrainingSettings or (self.of_search and precision is not None)
        if computes and precision not in self.precisions:
            layer = next((layer for layer in layers if "precision" in layer.values), self.base)
            remedy = f"write {' or '.join(map(repr, self.precisions))}"
            yield layer.problem("precision", f"is nothing that {self.place} computes in", remedy)


def _fits(value: Any, wanted: str) -> bool:
    """Is `value` of the type `wanted`? A whole number may stand for a float; no type wanted fits all."""
    if not wanted or (value is None and wanted.endswith("| None")):
        return True
    kind = wanted.removesuffix(" | None")
    return type(value).__name__ in (("int", "float") if kind == "float" else (kind,))


def _is_finite(value: Any) -> bool:
    """Whether every number in `value` is: JSON, in which plans and events are written, has no other."""
    if isinstance(value, Mapping):
        return all(map(_is_finite, value.values()))
    if isinstance(value, (list, tuple)):
        return all(map(_is_finite, value))
    return not isinstance(value, float) or math.isfinite(value)
