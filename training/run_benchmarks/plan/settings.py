"""`test_conf.py` without its cases: how every case of a run is set up on the hosts, and what its vendors need."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from run_benchmarks.plan.config_file import Entry
from run_benchmarks.plan.pip import read_pip_settings
from run_benchmarks.plan.reader import Reader, fields_of, type_name
from run_benchmarks.plan.records import RunSettings, Vendor, VendorSettings

DEFAULT_CONTAINER_HOME = "/workspace/flagperf"
# One path for host and container stands for one each: both dialects are read.
_SINGLE = ("FLAGPERF_PATH", "FLAGPERF_LOG_PATH")
_GONE = {"RANK_LAUNCHER": "delete this line: FlagPerf's own launcher starts the ranks of every framework"}


def read_run_settings(reader: Reader, training_dir: Path, log_path: Path | None) -> RunSettings:
    """All settings of the run; `log_path` overrides the file's. What is wrong has its default, and is noted."""
    for name, remedy in _GONE.items():
        reader.names.add(name)
        if reader.file.values.get(name) is not None:
            reader.problem(name, "is no longer a setting", remedy)
    pip = read_pip_settings(reader, training_dir)
    run = reader.read(RunSettings, _with_paths(reader, training_dir), pip=pip)
    if run is None:  # a path is wrong: that is noted, and the rest of the files is read all the same
        run = RunSettings(**_default_paths(training_dir), pip=pip)
    if log_path:
        run = replace(run, log_path=log_path.expanduser().absolute())
    _check_writable(run.log_path, reader, log_path)
    _check_registry(reader)
    return run


def _default_paths(training_dir: Path) -> dict[str, Any]:
    return {
        "FLAGPERF_PATH_HOST": str(training_dir),
        "FLAGPERF_PATH_CONTAINER": f"{DEFAULT_CONTAINER_HOME}/training",
        "FLAGPERF_LOG_PATH_HOST": training_dir / "result",
        "FLAGPERF_LOG_PATH_CONTAINER": f"{DEFAULT_CONTAINER_HOME}/result",
    }


def _with_paths(reader: Reader, training_dir: Path) -> dict[str, Any]:
    """The file's values, with a path each for host and container; the log path as this machine understands it."""
    written = {name: value for name, value in reader.file.values.items() if value is not None}
    given = {**_default_paths(training_dir), **written}
    for single in _SINGLE:
        reader.names.add(single)
        for part in (f"{single}_HOST", f"{single}_CONTAINER"):
            if single in written:
                _check_one_dialect(single, part, reader)
                given[part] = written[single]
                reader.written_as[part] = single
    if isinstance(given["FLAGPERF_LOG_PATH_HOST"], str):
        given["FLAGPERF_LOG_PATH_HOST"] = log_path_in(written, training_dir)
        if "FLAGPERF_LOG_PATH" in written:
            given["FLAGPERF_LOG_PATH_CONTAINER"] = str(given["FLAGPERF_LOG_PATH_HOST"])
    return given


def log_path_in(values: Mapping[str, Any], training_dir: Path) -> Path:
    """Where these values of a `test_conf.py` put results, whatever else is wrong with them."""
    given = (values.get(name) for name in ("FLAGPERF_LOG_PATH", "FLAGPERF_LOG_PATH_HOST"))
    text = next((value for value in given if isinstance(value, str) and value), "result")
    return Path(os.path.normpath(training_dir / Path(text).expanduser()))


def _check_one_dialect(single: str, part: str, reader: Reader) -> None:
    """`FLAGPERF_PATH` sets host and container at once; another value beside it would be ignored."""
    other = reader.file.values.get(part)
    if other is not None and other != reader.file.values[single]:
        message = f"contradicts {single}, which holds for host and container"
        reader.problem(part, message, f"keep {single}, or {single}_HOST and {single}_CONTAINER")


def _check_writable(log: Path, reader: Reader, override: Path | None) -> None:
    """The log folder, or the nearest folder above it that exists, must let this user write."""
    existing = next((path for path in (log, *log.parents) if path.exists()), Path("/"))
    if not existing.is_dir():
        message, remedy = f"{existing} is not a folder", "give a path below a folder"
    elif not os.access(existing, os.W_OK | os.X_OK, effective_ids=True):
        message = f"no permission to write into {existing}"
        remedy = "give a path that this user may write to, or change its owner"
    else:
        return
    if override is not None:
        reader.problems.add("command line", "--log-path", str(log), message, remedy)
        return
    names = ("FLAGPERF_LOG_PATH", "FLAGPERF_LOG_PATH_HOST")
    name = next((name for name in names if reader.file.values.get(name) is not None), names[0])
    reader.problem(name, message, remedy, str(log))


def _check_registry(reader: Reader) -> None:
    given = reader.file.values
    if given.get("IMAGE_DISTRIBUTION") == "registry" and not given.get("IMAGE_REGISTRY"):
        remedy = 'add IMAGE_REGISTRY = "host:port/path", or choose another IMAGE_DISTRIBUTION (build, stream)'
        reader.problem("IMAGE_DISTRIBUTION", "needs a registry, and IMAGE_REGISTRY is not set", remedy)


# ---- vendors


def read_vendor_settings(reader: Reader, default: str) -> dict[str, VendorSettings]:
    """Vendor -> its settings; for the vendor `default` the top-level ones, under those of VENDORS."""
    top = {name: reader.file.values.get(name) for name in fields_of(VendorSettings)}
    settings = {default: reader.read(VendorSettings) or VendorSettings()}
    for vendor, section in sections_of(reader).items():
        entry = ("VENDORS", vendor)
        reader.report_unknown_keys(entry, section, list(top))
        above = {name: value for name, value in section.items() if value is not None}
        whole = {**top, **above} if vendor == default else above
        settings[vendor] = reader.read(VendorSettings, whole, entry) or VendorSettings()
    return settings


def sections_of(reader: Reader) -> Mapping[str, dict[str, Any]]:
    """VENDORS, as far as it is a dict of dicts."""
    reader.names.add("VENDORS")
    sections = reader.file.values.get("VENDORS")
    if sections is None:
        return {}
    wrong = [sections] if not isinstance(sections, dict) else list(sections.values())
    if not isinstance(sections, dict) or not all(isinstance(section, dict) for section in wrong):
        kinds = ", ".join(sorted({type_name(section) for section in wrong}))
        remedy = 'write VENDORS = {"acme": {"ACCE_CONTAINER_OPT": " --device=/dev/acme"}}'
        reader.problem("VENDORS", f"is no dict with a dict for each vendor: there is {kinds}", remedy)
        return {}
    return cast(dict[str, dict[str, Any]], sections)


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
