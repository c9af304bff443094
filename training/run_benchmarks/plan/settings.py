"""`test_conf.py` without its cases: how every case of a run is set up on the hosts, and what its vendors need."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

from run_benchmarks.names import plain_path
from run_benchmarks.own_folder import check_place
from run_benchmarks.plan.config_file import Entry
from run_benchmarks.plan.monitors import SHOW_DISTURBANCES
from run_benchmarks.plan.pip import read_pip_settings
from run_benchmarks.plan.reader import Reader, fields_of
from run_benchmarks.plan.records import RunSettings, VendorChoice, VendorSettings
from run_benchmarks.plan.vendor_record import Vendor
from run_benchmarks.user_path import user_path
from utils.errors import FlagPerfError

DEFAULT_CONTAINER_HOME = "/workspace/flagperf"
NO_VENDOR = "VENDOR"
# By which public FlagPerf is told to start no containers.
IN_CONTAINER = "EXEC_IN_CONTAINER"
_BUILD_ARGS = "IMAGE_BUILD_ARGS"
_GONE = {"RANK_LAUNCHER": "delete this line: FlagPerf's own launcher starts the ranks of every framework"}


def read_run_settings(reader: Reader, training_dir: Path, log_path: Path | None) -> RunSettings:
    """All settings of the run; `log_path` overrides the file's. What is wrong has its default, and is noted."""
    for name, remedy in _GONE.items():
        reader.names.add(name)
        if reader.file.values.get(name) is not None:
            reader.problem(name, "is no longer a setting", remedy)
    pip = read_pip_settings(reader, training_dir)
    paths = _default_paths(training_dir)
    own_log = _log_path(reader, training_dir)
    run = reader.read(RunSettings, _with_paths(reader, paths, own_log), stand_ins=paths, pip=pip)
    assert run is not None, "whatever is missing or wrong has its default"  # noqa: S101 - for mypy
    run = replace(run, log_path=plain_path(log_path) if log_path else own_log)
    _check_writable(run.log_path, reader, log_path, training_dir)
    _check_registry(reader)
    _check_import_path(run, reader)
    _check_setup(run, reader)
    _check_shown(run, reader)
    if run.uses_images and os.environ.get(IN_CONTAINER):
        message = (
            f"would start containers, and {IN_CONTAINER} of the environment says that this is inside one"
        )
        remedy = (
            f'set RUNTIME = "process" (in machine_conf.py, if it is of this machine), or unset {IN_CONTAINER}'
        )
        reader.problem("RUNTIME", message, remedy, run.runtime)
    return run


def _default_paths(training_dir: Path) -> dict[str, Any]:
    return {
        "FLAGPERF_PATH_HOST": str(training_dir),
        "FLAGPERF_PATH_CONTAINER": f"{DEFAULT_CONTAINER_HOME}/training",
        "FLAGPERF_LOG_PATH_HOST": training_dir / "result",
        "FLAGPERF_LOG_PATH_CONTAINER": f"{DEFAULT_CONTAINER_HOME}/result",
    }


def _with_paths(reader: Reader, defaults: Mapping[str, Any], log: Path) -> dict[str, Any]:
    """The file's values over the paths by default; FLAGPERF_LOG_PATH as this machine understands it."""
    written = {name: value for name, value in reader.file.values.items() if value is not None}
    for single in ("FLAGPERF_PATH", "FLAGPERF_LOG_PATH"):
        for part in (f"{single}_HOST", f"{single}_CONTAINER"):
            if single in written and written.get(part, written[single]) != written[single]:
                message = f"contradicts {single}, which holds for host and container"
                reader.problem(part, message, f"keep {single}, or {single}_HOST and {single}_CONTAINER")
    if isinstance(written.get("FLAGPERF_LOG_PATH"), str):
        written["FLAGPERF_LOG_PATH_CONTAINER"] = str(log)
    return {**defaults, **written}


def log_path_in(values: Mapping[str, Any], training_dir: Path) -> Path:
    """Where these values of a `test_conf.py` put results, whatever else is wrong with them.

    Raises:
        FlagPerfError: see `user_path`.
    """
    given = (values.get(name) for name in ("FLAGPERF_LOG_PATH", "FLAGPERF_LOG_PATH_HOST"))
    text = next((value for value in given if isinstance(value, str) and value), "result")
    return Path(os.path.normpath(user_path(text, training_dir)))


def _log_path(reader: Reader, training_dir: Path) -> Path:
    try:
        return log_path_in(reader.file.values, training_dir)
    except FlagPerfError as error:
        reader.problem(_log_setting(reader), error.message, error.remedy)
        return training_dir / "result"


def _log_setting(reader: Reader) -> str:
    names = ("FLAGPERF_LOG_PATH", "FLAGPERF_LOG_PATH_HOST")
    return next((name for name in names if reader.file.values.get(name) is not None), names[0])


def _check_writable(log: Path, reader: Reader, override: Path | None, code: Path) -> None:
    """The log folder, or the nearest folder above it that exists, must let this user write."""
    existing = next((path for path in (log, *log.parents) if path.exists()), Path("/"))
    if not existing.is_dir():
        message, remedy = f"{existing} is not a folder", "give a path below a folder"
    elif not os.access(existing, os.W_OK | os.X_OK, effective_ids=True):
        message = f"no permission to write into {existing}"
        remedy = "give a path that this user may write to, or change its owner"
    elif (objection := _objection_to(log, code)) is not None:
        message, remedy = f"{objection.where}: {objection.message}", objection.remedy
    else:
        return
    if override is not None:
        reader.problems.add("command line", "--log-path", str(log), message, remedy)
        return
    reader.problem(_log_setting(reader), message, remedy, str(log))


def _objection_to(log: Path, code: Path) -> FlagPerfError | None:
    try:
        check_place(log, "give a folder of your own", code)
    except FlagPerfError as error:
        return error
    return None


def _check_import_path(run: RunSettings, reader: Reader) -> None:
    """Ranks import FlagPerf's code by PYTHONPATH, whose parts `:` separates."""
    part, path = (
        ("CONTAINER", run.flagperf_path_container) if run.uses_images else ("HOST", run.flagperf_path_host)
    )
    if ":" in path:
        names = (f"FLAGPERF_PATH_{part}", "FLAGPERF_PATH")
        name = next((name for name in names if reader.file.values.get(name) is not None), names[0])
        reader.problem(
            name, "has a `:` in it, with which no rank finds its code", "give a path without one", path
        )


def _check_registry(reader: Reader) -> None:
    given = reader.file.values
    if given.get("IMAGE_DISTRIBUTION") == "registry" and not given.get("IMAGE_REGISTRY"):
        remedy = 'add IMAGE_REGISTRY = "host:port/path", or choose another IMAGE_DISTRIBUTION (build, stream)'
        reader.problem("IMAGE_DISTRIBUTION", "needs a registry, and IMAGE_REGISTRY is not set", remedy)


def _check_setup(run: RunSettings, reader: Reader) -> None:
    if run.process_setup and run.uses_images:
        remedy = (
            'set RUNTIME = "process"; what containers need is a layer of their image, or a variable of theirs'
        )
        reader.problem(
            "PROCESS_SETUP", "is for plain processes, and RUNTIME has images", remedy, run.process_setup
        )


def _check_shown(run: RunSettings, reader: Reader) -> None:
    """A round of which it was not sampled would count as undisturbed."""
    for name in SHOW_DISTURBANCES if run.require_undisturbed else ():
        if run.monitors.get(name) is False:
            message = "is left out, and REQUIRE_UNDISTURBED needs it to see what disturbs a round"
            remedy = "sample it (remove this entry), or let rounds count without REQUIRE_UNDISTURBED"
            reader.problem(("MONITORS", name), message, remedy, False)


# ---- vendors


def read_vendor_choice(reader: Reader) -> VendorChoice:
    """VENDOR and VENDORS; where VENDOR is missing or wrong, a stand-in with which the rest can be read."""
    choice = reader.read(VendorChoice, stand_ins={"VENDOR": NO_VENDOR})
    assert choice is not None, "both have a default"  # noqa: S101 - for mypy
    return choice


def vendor_sections(
    reader: Reader, choice: VendorChoice, machine: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Vendor -> the settings of `VendorSettings` that the files have for it, by their names in a file.

    From weakest to strongest: the machine's, for the default vendor the top-level ones, those of VENDORS.
    """
    keys, before = list(fields_of(VendorSettings)), len(reader.problems.all)
    reader.read(VendorSettings)
    # what is wrong at the top has been noted there, and is not read again below the default vendor
    wrong = {problem.name.partition("[")[0] for problem in reader.problems.all[before:]}
    top = {name: reader.file.values.get(name) for name in keys if name not in wrong}
    sections = {}
    for vendor in dict.fromkeys((choice.vendor, *choice.vendors, *machine)):
        own = choice.vendors.get(vendor, {})
        reader.report_unknown_keys(("VENDORS", vendor), own, keys)
        above = top if vendor == choice.vendor else {}
        sections[vendor] = reduce(_over, (above, own), dict(machine.get(vendor, {})))
    return sections


def _over(below: dict[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """`above` where it says something; of build arguments each by itself."""
    both = {**below, **{name: value for name, value in above.items() if value is not None}}
    lower, upper = below.get(_BUILD_ARGS), above.get(_BUILD_ARGS)
    if isinstance(lower, Mapping) and isinstance(upper, Mapping):
        both[_BUILD_ARGS] = {**lower, **upper}
    return both


def read_vendor_settings(
    reader: Reader, sections: Mapping[str, Mapping[str, Any]]
) -> dict[str, VendorSettings]:
    """Vendor -> its settings, of what `vendor_sections` gave."""
    return {
        vendor: reader.read(VendorSettings, section, ("VENDORS", vendor)) or VendorSettings()
        for vendor, section in sections.items()
    }


def require_devices(vendor: Vendor, settings: VendorSettings, is_default: bool, reader: Reader) -> None:
    """Without a `vendor.py` nothing else says how a container and a rank get their devices."""
    needed = {
        "ACCE_CONTAINER_OPT": (settings.container_options, '" --gpus all"'),
        "ACCE_VISIBLE_DEVICE_ENV_NAME": (settings.visible_devices_env, '"CUDA_VISIBLE_DEVICES"'),
    }
    for name, (value, example) in needed.items():
        if value is None:
            message = f"is not set, and there is no {vendor.folder / 'vendor.py'} that says it"
            entry: Entry = (name,)
            line = f"{name} = {example}"
            if not is_default:
                entry = ("VENDORS", vendor.name, name)
                line = f'VENDORS = {{"{vendor.name}": {{"{name}": {example}}}}}'
            reader.problem(entry, message, f'add e.g. {line}; "" if there is none to give')
