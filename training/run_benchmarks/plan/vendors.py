"""`<vendor>/vendor.py`, read and checked; and vendors of existing FlagPerf folders, which have none."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from run_benchmarks.plan.apart import apart, exact
from run_benchmarks.plan.config_file import read_config_file
from run_benchmarks.plan.problems import Problems, choices
from run_benchmarks.plan.reader import Reader
from run_benchmarks.plan.vendor_record import Vendor
from utils.config_files import load_config
from utils.errors import FlagPerfError

VENDOR_FILE = "vendor.py"
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


def _parser(reader: Reader) -> Callable[[str], list[str]]:
    """The file's own reader of what LIST_DEVICES_COMMAND prints, executed apart from the controller."""
    path = reader.file.path

    def parse_device_list(stdout: str) -> list[str]:
        names: list[str] = apart(partial(_names_in, stdout, path), path)
        return names

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
