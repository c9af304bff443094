"""The kit itself: its parts one after the other on a vendor's folder, and the report that comes of them."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

from run_benchmarks.conformance import monitor, static, trial
from run_benchmarks.conformance.folder import chip_of, folder_trouble, require_vendor
from run_benchmarks.conformance.folder_secrets import secrets_in_folder
from run_benchmarks.conformance.records import (
    REPORT_FILE,
    CheckResult,
    ConformanceReport,
    Options,
    Part,
    failed,
    named,
    not_proven,
    read_report,
)
from run_benchmarks.origin import harness_of
from run_benchmarks.plan.secrets import Secrets, by_name_alone
from run_benchmarks.plan.vendor_record import Vendor
from run_benchmarks.plan.vendors import VENDOR_FILE
from run_benchmarks.stages.devices import LISTING_S
from utils.errors import FlagPerfError, raised
from utils.monitors.tool import run_tool
from utils.processor import CPUINFO, parse_cpuinfo
from utils.writing import write_whole

PARTS: Mapping[str, Part] = {
    "static": static.checks,
    "monitor": monitor.checks,
    "trial": trial.checks,
}
MARKDOWN_FILE = "conformance.md"


def examine(
    folder: Path, parts: Collection[str], python: Path, tell: Callable[[str], None]
) -> ConformanceReport:
    """Everything that these parts can prove of the vendor's folder, here and now; `tell` hears which one begins.

    Of a folder that is not safe to be read only that is said.
    """
    hardware: tuple[str, ...] = ()
    secrets = by_name_alone()
    checks = [replace(each, part="folder", name="files") for each in folder_trouble(folder)]
    if not checks:
        secrets = secrets_in_folder(folder)
        devices, hardware, check = _hardware(folder)
        checks = [check]
        for name in (name for name in PARTS if name in parts):
            tell(f"{folder.name}: {name} ...")
            checks += _of_part(name, folder, Options(python, devices))
    harness = harness_of(folder.parent, "")
    return ConformanceReport(
        vendor=folder.name,
        harness=f"{harness.commit or ''}{'+' if harness.dirty else ''}",
        date=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        hardware=secrets.hide_in(hardware),
        checks=tuple(_shown(each, folder.parent, secrets) for each in checks),
    )


def _of_part(name: str, folder: Path, options: Options) -> Iterator[CheckResult]:
    """The part's checks; where it breaks off, what it had come to and why it did not go on."""
    try:
        for check in PARTS[name](folder, options):
            yield replace(check, part=name)
    except (OSError, subprocess.SubprocessError, FlagPerfError) as error:
        yield replace(failed(f"it broke off: {raised(error)}", folder), part=name, name="the part itself")


def _shown(check: CheckResult, training: Path, secrets: Secrets) -> CheckResult:
    """As anybody may see it: without secrets, and with paths below `training/`: where that lies is nobody's business.

    All that the kit says comes through here.
    """
    texts = {name: getattr(check, name).replace(f"{training}/", "") for name in ("where", "detail", "remedy")}
    return replace(check, **secrets.hide_in(texts, names=False))


def _hardware(folder: Path) -> tuple[tuple[str, ...], tuple[str, ...], CheckResult]:
    """The vendor's devices on this machine: their lines, how many there are of each chip, and the check of it."""
    devices: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    trouble: list[CheckResult] = []
    try:
        vendor = require_vendor(folder)
        devices = tuple(vendor.parse_devices(run_tool(vendor.list_devices_command, LISTING_S)))
        kinds = tuple(_kinds(vendor, devices))
        trouble = [] if devices else [not_proven("there is none", folder / VENDOR_FILE)]
    except FlagPerfError as error:
        trouble = [not_proven(error.message, error.where or folder / VENDOR_FILE)]
    (check,) = named("devices of this machine", trouble, ", ".join(kinds))
    return devices, kinds, replace(check, part="hardware")


def _kinds(vendor: Vendor, devices: Collection[str]) -> Iterator[str]:
    """`8 x NAME` of each chip, with the line of its first device; a CPU with the model of the processor."""
    kinds: dict[str, list[str]] = {}
    for device in devices:
        kinds.setdefault(chip_of(vendor, device) or device, []).append(device)
    for kind, own in kinds.items():
        line = parse_cpuinfo(Path(CPUINFO).read_text()).model if vendor.device_type == "cpu" else own[0]
        yield f"{len(own)} x {kind}" + (f" ({line})" if line != kind else "")


def check_place(output: Path) -> None:
    """See that a report can be written into the folder `output`, which is made, and nothing but an earlier one is lost.

    Raises:
        FlagPerfError: there is something else, or no folder can be there.
    """
    try:
        output.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=output):
            pass
    except OSError as error:
        raise FlagPerfError(f"no report can be written there: {error.strerror}", where=str(output),
                            remedy="name a folder with --output") from error  # fmt: skip
    try:
        if read_report(output / REPORT_FILE) is None and (output / MARKDOWN_FILE).exists():
            raise FlagPerfError("is there, and no report of the kit's", where=str(output / MARKDOWN_FILE))
    except FlagPerfError as error:
        error.remedy = "nothing but a report is written over: name another folder with --output"
        raise


def write_report(report: ConformanceReport, markdown: str, output: Path) -> None:
    """Write the report as JSON and as Markdown; raises FlagPerfError where that cannot be done."""
    try:
        output.mkdir(parents=True, exist_ok=True)
        write_whole(output / REPORT_FILE, report.as_json())
        write_whole(output / MARKDOWN_FILE, markdown)
    except OSError as error:
        raise FlagPerfError(
            f"cannot be written: {error.strerror}", where=str(error.filename or output)
        ) from error
