"""A model's parameters and an optimizer's settings as plain data, and in what two of them differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_MOST_NAMES = 3
# What a wrapper puts before the names of all parameters, and between them.
_WRAPPERS = ("module", "_layers", "_orig_mod")
_INNER_WRAPPERS = ("_orig_mod", "_checkpoint_wrapped_module")
# How it is called, the attribute of `Weight`, and what follows from a difference.
_ATTRIBUTES = (
    ("shape", "shape", ""),
    ("dtype", "dtype", " (initial values not compared)"),
    ("whether it is trained", "trained", ""),
)


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
    for what, attribute, note in _ATTRIBUTES:
        names = [n for n in shared if getattr(case[n], attribute) != getattr(vendor[n], attribute)]
        if names:
            was, now = (str(getattr(side[names[0]], attribute)) for side in (case, vendor))
            differences.append((f"{what} of {_listed(names)}", was, now + note))
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
        # where tensors have other shapes, which is said of the weights, the values alone can be compared
        is_other = (
            own != other if _shapes(own) == _shapes(other) else _amounts(own).keys() != _amounts(other).keys()
        )
        if is_other:
            differences.append((f"optimizer's {name}", _counted(own), _counted(other)))
    return differences


def _values(settings: Sequence[Mapping[str, Any]], name: str) -> Counter[tuple[Any, Any]]:
    """How many tensors of a shape have a value: copies of the weights have no names to go by."""
    return Counter((each.get("shape"), each.get(name)) for each in settings)


def _shapes(values: Counter[tuple[Any, Any]]) -> Counter[Any]:
    """How many tensors have a shape."""
    shapes: Counter[Any] = Counter()
    for (shape, _), number in values.items():
        shapes[shape] += number
    return shapes


def _amounts(values: Counter[tuple[Any, Any]]) -> Counter[Any]:
    """How many tensors have a value."""
    amounts: Counter[Any] = Counter()
    for (_, value), number in values.items():
        amounts[value] += number
    return amounts


def _counted(values: Counter[tuple[Any, Any]]) -> str:
    """`0.01 (of 3 tensors), 0.0 (of 5)`."""
    amounts = _amounts(values)
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
