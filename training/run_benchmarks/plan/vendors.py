"""`<vendor>/vendor.py`, read and checked; and vendors of existing FlagPerf folders, which have none."""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from run_benchmarks.plan.apart import apart
from run_benchmarks.plan.config_file import read_config_file
from run_benchmarks.plan.problems import Problems, choices
from run_benchmarks.plan.reader import Reader, fields_of
from run_benchmarks.plan.vendor_record import Chip, Vendor
from utils.config_files import load_config
from utils.errors import FlagPerfError
from utils.plain_data import exact

VENDOR_FILE = "vendor.py"
NO_VENDORS = ("benchmarks", "run_benchmarks", "utils", "result")  # folders of training/
PARSER = "parse_device_list"


def find_vendors(training_dir: Path) -> list[str]:
    """The names of the vendors whose folders are here."""
    folders = (folder for folder in training_dir.glob("*") if folder.is_dir())
    return sorted(f.name for f in folders if (f / VENDOR_FILE).is_file() or is_undescribed_vendor(f))


def is_undescribed_vendor(folder: Path) -> bool:
    """Whether `folder` is a vendor's as FlagPerf had them before `vendor.py`: configs, and images for them."""
    if (folder / VENDOR_FILE).is_file():
        return False
    return any(
        next(folder.glob(mark), None) for mark in ("*-*/config/config_*.py", "docker_image/*/Dockerfile")
    )


def read_vendor(name: str, training_dir: Path, where: str, subject: str, problems: Problems) -> Vendor | None:
    """The vendor `name`; None where it cannot be had, with the reasons among `problems`.

    `where` and `subject` are the line and the setting that name it.
    """
    path = training_dir / name / VENDOR_FILE
    if is_undescribed_vendor(path.parent):
        return _undescribed(path.parent)
    if not path.is_file():
        report_no_vendor(name, training_dir, where, subject, problems)
        return None
    before = len(problems.all)
    file = read_config_file(path, problems, "restore the file")
    if file is None:
        return None
    reader = Reader(file, problems)
    given = {**file.values, "CHIPS": _with_names(file.values.get("CHIPS"))}
    vendor = reader.read(Vendor, given, name=name, folder=path.parent, parse_devices=_parser(reader))
    _report_unknown_fields(reader, file.values.get("CHIPS"))
    reader.report_rest(lambda name, value: True)
    return vendor if len(problems.all) == before else None


def report_no_vendor(name: str, training_dir: Path, where: str, subject: str, problems: Problems) -> None:
    """Note that there is no vendor `name`, of which `subject` at `where` speaks."""
    vendors, folder = find_vendors(training_dir), training_dir / name
    reason = f"there is no {VENDOR_FILE} in it" if folder.is_dir() else "there is no such folder"
    problems.add(where, subject, name, f"{reason}: {folder}", f"write one of: {choices(name, vendors)}")


def _undescribed(folder: Path) -> Vendor:
    """Nothing is known of its chips; what a container needs stands in test_conf.py."""
    return Vendor(
        name=folder.name,
        folder=folder,
        device_type="",
        visible_devices_env="",
        collective_backend={},
        list_devices_command=(),
        parse_devices=str.splitlines,
        described=False,
    )


def _with_names(chips: Any) -> Any:
    """A chip's name is its key in CHIPS."""
    if not isinstance(chips, dict):
        return chips
    return {name: {**chip, "name": name} if isinstance(chip, dict) else chip for name, chip in chips.items()}


def _report_unknown_fields(reader: Reader, chips: Any) -> None:
    """What nothing reads of a chip would be missed where its figure is needed."""
    names = [name for name in fields_of(Chip) if name != "name"]
    for chip, about in chips.items() if isinstance(chips, dict) else ():
        if isinstance(about, dict):
            reader.report_unknown_keys(("CHIPS", chip), about, names)
            source = about.get("source")
            of_figures = (
                {name: text for name, text in source.items() if name != ""}
                if isinstance(source, dict)
                else {}
            )
            reader.report_unknown_keys(("CHIPS", chip, "source"), of_figures, names)


def _parser(reader: Reader) -> Callable[[str], list[str]]:
    """The file's own reader of what LIST_DEVICES_COMMAND prints, executed apart from the controller."""
    path = reader.file.path

    @functools.lru_cache(maxsize=64)  # hosts that are alike print the same, and each time costs a process
    def parsed(stdout: str) -> tuple[str, ...]:
        return tuple(apart(partial(_names_in, stdout, path), path))

    def parse_device_list(stdout: str) -> list[str]:  # the plan shows its name
        return list(parsed(stdout))

    if PARSER in reader.file.functions:
        return parse_device_list
    remedy = f"define {PARSER}(stdout: str) -> list[str], for what LIST_DEVICES_COMMAND prints"
    reader.problem(PARSER, "is not a function of the file", remedy)
    return str.splitlines


def _names_in(stdout: str, path: Path) -> list[str]:
    names = exact(vars(load_config(path))[PARSER](stdout))
    if isinstance(names, list) and all(isinstance(name, str) for name in names):
        return names
    raise FlagPerfError("what it returns is no list of texts", where=str(path))
