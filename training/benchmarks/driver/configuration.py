"""The layered configuration: command line over vendor file over the case's `_base.py` over the driver's own.

Only names that a lower layer knows may be set: a misspelt name is an error, not a new setting.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from benchmarks.driver.arguments import LaunchArguments
from benchmarks.driver.settings import OPTIMIZERS, PRECISIONS, SCHEDULES, DriverSettings
from utils.config_files import load_constants
from utils.errors import Problem, ProblemsError, nearest

MUTABLE_FILE = "mutable_params.py"
MUTABLE_NAME = "mutable_params"
# Whatever the case: they are about what becomes of a run that is cut off, and leave the task as it is.
ALWAYS_MUTABLE = ("save_steps",)
_DRIVER_TYPES = {field.name: str(field.type) for field in fields(DriverSettings)}


@dataclass(frozen=True)
class Layer:
    """Values of one source; `source` is a file's path or `command line`."""

    source: str
    values: Mapping[str, Any]


@dataclass(frozen=True)
class Configuration:
    """The resolved settings.

    `driver` are the driver's, `case` the other names of the case's `_base.py`, `origin` says for each name
    which layer set it, and `changed` lists the names that the vendor or the command line changed although
    the case does not list them as mutable (a result with any is *open*, else *closed*).
    """

    driver: DriverSettings
    case: Mapping[str, Any]
    origin: Mapping[str, str]
    changed: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """All settings as plain data, for the log."""
        return {**asdict(self.driver), **self.case}


def read_configuration(arguments: LaunchArguments, metric: str) -> Configuration:
    """The configuration of a rank, from its files and command line.

    Args:
        arguments: the launch contract's.
        metric: name of the case's metric: the setting `target_<metric>` is the driver's `target`.

    Raises:
        FlagPerfError: a file is missing or fails.
        ProblemsError: an unknown name, a wrong type or an impossible value, all of them at once.
    """
    folder = arguments.case_dir / "config"
    base = Layer(str(folder / "_base.py"), load_constants(folder / "_base.py"))
    above = [Layer("command line", arguments.overrides)] if arguments.overrides else []
    if arguments.enable_extern_config and arguments.extern_config_file:
        vendor_file = (arguments.extern_config_dir or Path()) / arguments.extern_config_file
        above.insert(0, Layer(str(vendor_file), load_constants(vendor_file)))
    return resolve(base, above, metric=metric, mutable=_mutable_names(folder))


def resolve(
    base: Layer, above: Sequence[Layer], *, metric: str, mutable: Sequence[str] = ()
) -> Configuration:
    """Lay `above` (lowest first) over `base` over the driver's defaults."""
    alias = {f"target_{metric}": "target"} if metric else {}
    defaults = asdict(DriverSettings())
    values: dict[str, Any] = {**defaults, **_renamed(base.values, alias)}
    origin = dict.fromkeys(values, "driver") | dict.fromkeys(_renamed(base.values, alias), base.source)
    task = dict(values)
    problems = _wrong_types(base, alias, defaults)
    for layer in above:
        problems += _unknown_names(layer, alias, values) + _wrong_types(layer, alias, task)
        known = {name: value for name, value in _renamed(layer.values, alias).items() if name in values}
        values.update(known)
        origin.update(dict.fromkeys(known, layer.source))
    values = {name: _as_float(value, defaults.get(name)) for name, value in values.items()}
    problems += _impossible(values, origin)
    if problems:
        raise ProblemsError(problems)
    names = {field.name for field in fields(DriverSettings)}
    return Configuration(
        driver=DriverSettings(**{name: values[name] for name in names}),
        case={name: value for name, value in values.items() if name not in names},
        origin=origin,
        changed=tuple(
            sorted(n for n in values if values[n] != task[n] and n not in (*mutable, *ALWAYS_MUTABLE))
        ),
    )


def _mutable_names(folder: Path) -> tuple[str, ...]:
    """What the case lets a vendor change; without the file nothing."""
    path = folder / MUTABLE_FILE
    return tuple(load_constants(path).get(MUTABLE_NAME, ())) if path.is_file() else ()


def _renamed(values: Mapping[str, Any], alias: Mapping[str, str]) -> dict[str, Any]:
    return {alias.get(name, name): value for name, value in values.items()}


def _unknown_names(layer: Layer, alias: Mapping[str, str], known: Mapping[str, Any]) -> list[Problem]:
    return [
        Problem(
            layer.source,
            name,
            repr(value),
            "no such setting",
            nearest(name, [*known, *alias]) or "the settings are those of the case's config/_base.py",
        )
        for name, value in layer.values.items()
        if alias.get(name, name) not in known
    ]


def _wrong_types(layer: Layer, alias: Mapping[str, str], lower: Mapping[str, Any]) -> list[Problem]:
    problems = []
    for name, value in layer.values.items():
        wanted = _wanted_type(alias.get(name, name), lower)
        if not _fits(value, wanted):
            problems.append(Problem(layer.source, name, repr(value), f"is not {wanted}", f"give a {wanted}"))
    return problems


def _wanted_type(name: str, lower: Mapping[str, Any]) -> str:
    """As it stands in DriverSettings; of a case's own name the type of the value in its `_base.py`."""
    below = lower.get(name)
    return _DRIVER_TYPES.get(name) or ("" if below is None else type(below).__name__)


def _fits(value: Any, wanted: str) -> bool:
    """Is `value` of the type `wanted`? A whole number may stand for a float; no type wanted fits all."""
    if not wanted or (value is None and wanted.endswith("| None")):
        return True
    kind = wanted.removesuffix(" | None")
    if isinstance(value, bool):
        return kind == "bool"
    if kind == "float":
        return isinstance(value, (int, float))
    return type(value).__name__ == kind


def _as_float(value: Any, default: Any) -> Any:
    return float(value) if isinstance(default, float) and isinstance(value, int) else value


def _impossible(values: Mapping[str, Any], origin: Mapping[str, str]) -> list[Problem]:
    """Values of the right type that no run can have."""
    problems = [
        _problem(name, values, origin, "must be at least 1", "give a whole number from 1 up")
        for name in ("train_batch_size", "gradient_accumulation_steps", "eval_batch_size", "log_freq")
        if not isinstance(values[name], int) or values[name] < 1
    ]
    if values["save_steps"] is not None and values["save_steps"] < 1:
        problems.append(_problem("save_steps", values, origin, "must be at least 1", "or set it to None"))
    choices = {"precision": PRECISIONS, "optimizer": OPTIMIZERS, "lr_schedule": SCHEDULES}
    problems += [
        _problem(name, values, origin, "is not known", f"choose one of {', '.join(known)}")
        for name, known in choices.items()
        if values[name] not in known
    ]
    if values["max_steps"] is None and values["max_samples_termination"] is None:
        problems.append(_problem("max_steps", values, origin, "nothing ends the run", "set it"))
    if values["lr_schedule"] == "linear" and values["decay_steps"] is None and values["max_steps"] is None:
        remedy = "set it or max_steps"
        problems.append(_problem("decay_steps", values, origin, "the decay has no end", remedy))
    if values["eval_interval_steps"] is not None and values["eval_interval_samples"] is not None:
        message, remedy = "eval_interval_samples is set too", "set one of the two to None"
        problems.append(_problem("eval_interval_steps", values, origin, message, remedy))
    return problems


def _problem(
    name: str, values: Mapping[str, Any], origin: Mapping[str, str], message: str, remedy: str
) -> Problem:
    return Problem(origin.get(name, "driver"), name, repr(values[name]), message, remedy)
