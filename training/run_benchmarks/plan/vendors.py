"""`<vendor>/vendor.py`, read and checked; and vendors of existing FlagPerf folders, which have none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import FunctionType
from typing import Any

from run_benchmarks.plan import kinds
from run_benchmarks.plan.problems import Problems, UnfitError, listing
from run_benchmarks.plan.reader import Reader
from run_benchmarks.plan.records import Chip, Vendor
from run_benchmarks.plan.source import read_source
from utils.errors import nearest
from utils.loading import load_module

VENDOR_FILE = "vendor.py"
DTYPES = ("bf16", "fp16", "tf32", "fp32", "fp64", "fp8", "int8")


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
    before = len(problems.found)
    source = read_source(path, problems, "restore the file")
    if source is None:
        return None
    vendor = _read(name, Reader(source, problems))
    return vendor if len(problems.found) == before else None


def report_no_vendor(name: str, training_dir: Path, where: str, subject: str, problems: Problems) -> None:
    """Note that there is no vendor `name`, of which `subject` at `where` speaks."""
    vendors, folder = find_vendors(training_dir), training_dir / name
    reason = f"there is no {VENDOR_FILE} in it" if folder.is_dir() else "there is no such folder"
    hint = nearest(name, vendors)
    remedy = f"write one of: {listing(vendors)}" + (f"; {hint}" if hint else "")
    problems.add(where, subject, name, f"{reason}: {folder}", remedy)


def _undescribed(folder: Path) -> Vendor:
    """Nothing is known of its chips; what a container needs stands in test_conf.py."""
    return Vendor(
        name=folder.name,
        folder=folder,
        device_type="",
        visible_devices_env="",
        collective_backend={},
        container_options=(),
        chips={},
        list_devices_command=(),
        parse_devices=str.splitlines,
        described=False,
    )


def _read(name: str, reader: Reader) -> Vendor:
    return Vendor(
        name=name,
        folder=reader.source.path.parent,
        device_type=reader.require("DEVICE_TYPE", kinds.text("cuda"), '"cuda"') or "",
        visible_devices_env=reader.require(
            "VISIBLE_DEVICES_ENV", kinds.environment_name, '"CUDA_VISIBLE_DEVICES"'
        )
        or "",
        collective_backend=reader.require("COLLECTIVE_BACKEND", kinds.text_dict, '{"pytorch": "nccl"}') or {},
        container_options=reader.get("CONTAINER_OPTIONS", kinds.texts("--gpus=all"), ()),
        chips=_read_chips(reader),
        list_devices_command=reader.require(
            "LIST_DEVICES_COMMAND", kinds.texts("nvidia-smi"), '["nvidia-smi", "--list-gpus"]'
        )
        or (),
        parse_devices=_parser(reader),
    )


def _parser(reader: Reader) -> Callable[[str], list[str]]:
    """The file's own `parse_device_list`, which reads what LIST_DEVICES_COMMAND prints."""
    path = reader.source.path
    parse = vars(load_module(path, f"flagperf_vendor_{path.parent.name}")).get("parse_device_list")
    if isinstance(parse, FunctionType):
        return parse
    remedy = "define parse_device_list(stdout: str) -> list[str], for what LIST_DEVICES_COMMAND prints"
    reader.problems.add(path, "parse_device_list", None, "is not a function of the file", remedy)
    return str.splitlines


def _read_chips(reader: Reader) -> dict[str, Chip]:
    chips: dict[str, Chip] = {}
    for name, value in reader.get("CHIPS", _dict, {}).items():
        try:
            chips[str(name)] = _chip(str(name), value)
        except UnfitError as unfit:
            where = reader.source.where("CHIPS", str(name))
            reader.problems.add(where, f"CHIPS[{name!r}]", value, unfit.message, unfit.remedy)
    return chips


def _chip(name: str, value: Any) -> Chip:
    about = _dict(value)
    kinds.path_name(name)
    wanted = ("device_names", "memory_gib", "peak_flops", "source")
    for key in wanted:
        if key not in about:
            raise UnfitError(f"has no {key!r}", f"a chip is a dict with {listing(wanted)}")
    memory = about["memory_gib"]
    return Chip(
        name=name,
        device_names=_within("device_names", kinds.texts("A100"), about),
        memory_gib=None if memory is None else _within("memory_gib", kinds.number(0, above=True), about),
        peak_flops=_within("peak_flops", _peaks, about),
        source=_within("source", kinds.text("the vendor's data sheet"), about),
    )


def _within(key: str, kind: kinds.Kind[kinds.T], about: Mapping[str, Any]) -> kinds.T:
    try:
        return kind(about[key])
    except UnfitError as unfit:
        raise UnfitError(f"its {key!r} {unfit.message}", unfit.remedy) from None


def _peaks(value: Any) -> dict[str, float]:
    """dtype -> dense FLOP/s; a peak of None is not known and is left out."""
    peaks: dict[str, float] = {}
    for dtype, peak in _dict(value).items():
        if dtype not in DTYPES:
            raise UnfitError(f"has the unknown dtype {dtype!r}", f"use {listing(DTYPES)}")
        if peak is not None:
            peaks[dtype] = kinds.number(0, above=True)(peak)
    return peaks


def _dict(value: Any) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise UnfitError(
            f"has the wrong type: it is {kinds.type_name(value)}, not a dict", "write a dict: {...}"
        )
    return value
