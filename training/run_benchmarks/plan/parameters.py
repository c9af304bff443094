"""What a case is trained with: the driver's settings under its `_base.py` under the vendor's config file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from run_benchmarks.plan.problems import Problems
from run_benchmarks.plan.records import CaseFiles
from run_benchmarks.plan.source import Source, read_source
from utils.errors import nearest
from utils.loading import load_module

DRIVER_SETTINGS = "benchmarks/driver/settings.py"
DRIVER_CLASS = "DriverSettings"
MUTABLE_FILE = "mutable_params.py"
MUTABLE_NAME = "mutable_params"
ONLY_IN_IMAGE = "(made by code that only the image can run)"
_NOT_THERE = object()


@dataclass(frozen=True)
class _Driver:
    """The settings that every case has by the shared driver: values, and types as written (`int | None`)."""

    values: Mapping[str, Any] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Parameters:
    """`values`: name -> value. `differs`: see CasePlan."""

    values: Mapping[str, Any]
    differs: Mapping[str, Any] | None = None


def read_parameters(training_dir: Path, files: CaseFiles, problems: Problems) -> Parameters | None:
    """The case's parameters; None, with the reasons among `problems`, where one of the files is wrong.

    A case with a script of its own reads its configuration itself: it may have no `_base.py`, and which
    names its vendors may set is its own business.
    """
    own_script = files.script.startswith(f"{files.case_dir}/")
    config_dir = training_dir / files.case_dir / "config"
    base_path = config_dir / "_base.py"
    vendor_path = training_dir / files.config_dir / files.config_file
    vendor = read_source(vendor_path, problems, "write the vendor's config file", for_images=True)
    if own_script and not base_path.is_file():
        return None if vendor is None else Parameters(vendor.values)
    base = read_source(base_path, problems, "write the case's parameters into this file", for_images=True)
    if vendor is None or base is None:
        return None
    if own_script:
        differs = _differences(vendor, base, config_dir / MUTABLE_FILE, problems)
        return Parameters({**base.values, **vendor.values}, differs)
    driver = _read_driver(training_dir / DRIVER_SETTINGS)
    _check_names_and_types(vendor, base, driver, problems)
    return Parameters({**driver.values, **base.values, **vendor.values})


def _differences(
    vendor: Source, base: Source, mutable_path: Path, problems: Problems
) -> dict[str, Any] | None:
    """What the vendor sets otherwise than the case although the case does not list it as mutable.

    A name that only the vendor has is among it, as is one whose value only the image can tell. None where
    the case has no list.
    """
    if not mutable_path.is_file():
        return None
    listed = read_source(mutable_path, problems, "restore the file", for_images=True)
    if listed is None or not isinstance(listed.values.get(MUTABLE_NAME), (list, tuple)):
        return None
    set_by_vendor = {name: ONLY_IN_IMAGE for name in vendor.lines.names if not name.startswith("_")}
    return {
        name: value
        for name, value in {**set_by_vendor, **vendor.values}.items()
        if name not in listed.values[MUTABLE_NAME] and base.values.get(name, _NOT_THERE) != value
    }


def _read_driver(path: Path) -> _Driver:
    """The driver's settings, read by path: the controller never imports what runs in containers."""
    if not path.is_file():
        return _Driver()
    settings = vars(load_module(path, "flagperf_driver_settings"))[DRIVER_CLASS]
    types = {setting.name: str(setting.type) for setting in fields(settings)}
    # `target` has another name in each case (`target_mlm_accuracy`); its default here says nothing.
    values = {name: getattr(settings(), name) for name in types if name != "target"}
    return _Driver(values, types)


def _check_names_and_types(vendor: Source, base: Source, driver: _Driver, problems: Problems) -> None:
    """What the driver would refuse after the launch is refused here, before it."""
    known = {**driver.types, **base.values}
    for name, value in vendor.values.items():
        if name not in known:
            listed = f"remove it, or add it to {base.path}; it has {', '.join(base.values)}"
            message = f"is no parameter of the case ({base.path})"
            problems.add(vendor.where(name), name, value, message, nearest(name, known) or listed)
            continue
        wanted = driver.types.get(name) or _type_of(base.values[name])
        if not _fits(value, wanted):
            message = f"has the wrong type for this parameter of the case ({base.path})"
            problems.add(vendor.where(name), name, value, message, f"write a value of type {wanted}")


def _type_of(value: Any) -> str:
    return "" if value is None else f"{type(value).__name__} | None"


def _fits(value: Any, wanted: str) -> bool:
    """Whether `value` has a type of `wanted` (`int | None`); a whole number may stand for a float."""
    names = wanted.split(" | ")
    if not wanted or type(value).__name__ in names or (value is None and "None" in names):
        return True
    return "float" in names and isinstance(value, int) and not isinstance(value, bool)
