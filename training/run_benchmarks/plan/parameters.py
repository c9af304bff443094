"""What a case is run with: the driver's settings under its `_base.py` under the vendor's config file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from run_benchmarks.plan.case_code import check_own_names
from run_benchmarks.plan.config_file import ConfigFile, read_config_file
from run_benchmarks.plan.problems import Problems
from run_benchmarks.plan.records import CaseFiles
from utils.case_form import MUTABLE_FILE, MUTABLE_NAME, mutable_problem
from utils.errors import ProblemsError
from utils.parameters import KIND, UNKNOWN, Layer, resolve

_ABSENT = object()
COMMON = "benchmarks/common"  # what cases share


@dataclass(frozen=True)
class Parameters:
    """What a case is run with.

    values: name -> value. differs: see CasePlan. metric: what the target is of, where the driver trains.
    """

    values: Mapping[str, Any]
    differs: Mapping[str, Any] | None = None
    metric: str = ""


def read_parameters(
    training_dir: Path, files: CaseFiles, problems: Problems, device_type: str = ""
) -> Parameters | None:
    """The case's parameters; None, with the reasons among `problems`, where one of the files is wrong.

    A case with a script of its own reads its configuration itself: it may have no `_base.py`, and which
    names its vendors may set is its own business.
    """
    own_script = files.script.startswith(f"{files.case_dir}/")
    config_dir = training_dir / files.case_dir / "config"
    base_path = config_dir / "_base.py"
    vendor_path = training_dir / files.config_dir / files.config_file
    vendor = read_config_file(vendor_path, problems, "write the vendor's config file", for_images=True)
    if own_script and not base_path.is_file():
        return None if vendor is None else Parameters(_resolved(vendor.values))
    base = read_config_file(
        base_path, problems, "write the case's parameters into this file", for_images=True
    )
    if vendor is None or base is None:
        return None
    if own_script:
        differs = _differences(vendor, base, config_dir / MUTABLE_FILE, problems)
        return Parameters(_resolved({**base.values, **vendor.values}), differs)
    check_own_names(base, (*code_folders(training_dir, files), training_dir / COMMON), problems)
    mutable = _mutable_names(config_dir / MUTABLE_FILE, problems)
    return _checked(base, vendor, mutable, Path(files.case_dir).name, device_type, problems)


def code_folders(training_dir: Path, files: CaseFiles) -> tuple[Path, ...]:
    """Where the case's own code lies, and the vendor's for it."""
    return (training_dir / files.case_dir).parent, training_dir / files.extern_dir


def _checked(
    base: ConfigFile,
    vendor: ConfigFile,
    mutable: Sequence[str],
    framework: str,
    device_type: str,
    problems: Problems,
) -> Parameters | None:
    """What every rank will make of the two files; it would refuse after the launch what is refused here."""
    layers = [Layer(str(file.path), file.values, file.where) for file in (base, vendor)]
    try:
        config = resolve(layers[0], layers[1:], mutable=mutable, framework=framework, device_type=device_type)
    except ProblemsError as error:
        problems.extend(error.problems)
        return None
    values = {KIND: config.kind, **config.as_dict()}
    differs = {name: values[name] for name in config.changed}
    differs |= {n: repr(v) for n, v in vendor.values.items() if v is UNKNOWN and n not in mutable}
    if config.metric:
        values[f"target_{config.metric}"] = values.pop("target")
    return Parameters(values, differs, config.metric)


def _mutable_names(path: Path, problems: Problems) -> tuple[str, ...]:
    """What the case lets a vendor change; none where the file is wrong, which is then among the problems."""
    listed = read_config_file(path, problems, "", for_images=True) if path.is_file() else None
    if listed is None and path.is_file():
        return ()
    if problem := mutable_problem(path, None if listed is None else listed.values):
        problems.extend([problem])
        return ()
    return () if listed is None else tuple(listed.values[MUTABLE_NAME])


def _resolved(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not UNKNOWN}


def _differences(
    vendor: ConfigFile, base: ConfigFile, mutable_path: Path, problems: Problems
) -> dict[str, Any] | None:
    """What the vendor sets otherwise than the case although the case does not list it as mutable.

    A name that only the vendor has is among it, as is one whose value only the image can tell. None where
    the case has no list.
    """
    if not mutable_path.is_file():
        return None
    listed = read_config_file(mutable_path, problems, "restore the file", for_images=True)
    if listed is None or not isinstance(listed.values.get(MUTABLE_NAME), (list, tuple)):
        return None
    set_by_vendor = {str(entry[0]): UNKNOWN for entry in vendor.lines if not str(entry[0]).startswith("_")}
    return {
        name: repr(value) if value is UNKNOWN else value
        for name, value in {**set_by_vendor, **vendor.values}.items()
        if name not in listed.values[MUTABLE_NAME] and base.values.get(name, _ABSENT) != value
    }
