"""The devices of a host: as many as the cases want, and of the kind that their configurations name."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Sequence

from run_benchmarks.plan.problems import shorten
from run_benchmarks.plan.records import CasePlan, Plan
from run_benchmarks.plan.vendor_record import Vendor
from run_benchmarks.plan.vendors import VENDOR_FILE
from run_benchmarks.runtimes.base import Runtime
from run_benchmarks.stages.checks import DoubtError, HostUse
from run_benchmarks.stages.granted_devices import granted_devices
from run_benchmarks.transports.base import CommandTimeoutError, Transport
from utils.errors import FlagPerfError
from utils.text_files import one_line

LISTING_S = 60.0
MOST_SHOWN = 200  # characters of what a tool calls its devices


async def devices(plan: Plan, runtime: Runtime, use: HostUse) -> str | None:
    """There are as many devices as the cases want, and of the kind that their configs name.

    A host that several vendors' cases use is asked for each vendor's devices.
    """
    of_vendor: dict[str, list[CasePlan]] = {}
    for case in use.cases:
        of_vendor.setdefault(case.vendor.name, []).append(case)
    details, doubts = [], []
    for cases in of_vendor.values():
        try:
            details.append(await _check(cases, use.transport))
            for case in cases:
                await granted_devices(plan, case, use.transport)
        except DoubtError as doubt:  # another vendor's devices may yet forbid the run
            doubts.append(doubt)
    if doubts:
        raise doubts[0]
    return ", ".join(details) or None


async def _check(cases: list[CasePlan], transport: Transport) -> str:
    """Compare the devices of one vendor with what each of its cases wants."""
    names = await list_devices(cases[0].vendor, transport)
    kinds = kinds_text(names)
    for case in cases:
        settings, chip = case.settings, case.chip
        if len(names) < settings.nproc:
            message = f"{settings.name} wants {settings.nproc} devices; there are {len(names)} ({kinds})"
            raise FlagPerfError(message, remedy="lower nproc, or run on a host with more")
        wanted = chip.device_names if chip else ()
        if chip and wanted and not all(any(part in name for part in wanted) for name in names):
            message = f"{settings.name} wants {chip.name} (named {' or '.join(wanted)}); there is {kinds}"
            remedy = f"use the config of the chip that is there in place of {case.files.config_file}; or, where it is "
            remedy += f"{chip.name}, write a part of its name into device_names of CHIPS[{chip.name!r}] in "
            remedy += f"{case.vendor.folder / VENDOR_FILE}"
            raise FlagPerfError(message, remedy=remedy)
    return kinds


def kinds_text(names: Sequence[str]) -> str:
    """`8 x NVIDIA H200, 143771 MiB`: how many devices there are, and of which kinds."""
    listed = one_line(", ".join(sorted(set(names))))
    return f"{len(names)} x {shorten(listed, MOST_SHOWN)}" if names else "none"


async def list_devices(vendor: Vendor, transport: Transport) -> list[str]:
    """The names of the devices that the vendor sees on a host."""
    if not vendor.list_devices_command:
        detail = f"not checked: nothing says how to list those of {vendor.name}"
        remedy = f"see yourself that they are there, or write {vendor.folder / 'vendor.py'} (CONTRIBUTING.md)"
        raise DoubtError(detail, remedy=remedy)
    command = vendor.list_devices_command
    try:
        done = await transport.run(command, timeout=LISTING_S)
    except CommandTimeoutError as error:
        remedy = f"run {shlex.join(command)} on this host: its driver or a device does not answer; else mend "
        remedy += f"LIST_DEVICES_COMMAND in {vendor.folder / VENDOR_FILE}"
        raise FlagPerfError(error.message, where=error.where, remedy=remedy) from error
    if not done.ok:
        remedy = f"check the driver of {vendor.name} on this host, and the case's vendor in test_conf.py"
        raise FlagPerfError(f"{' '.join(done.argv)}: {done.last_lines(2)}", remedy=remedy)
    devices = done.whole_stdout()
    try:
        # in a thread, for it waits for a process of its own
        return await asyncio.to_thread(vendor.parse_devices, devices)
    except FlagPerfError as error:
        if not error.where:  # what the vendor's code says of the devices; of that code itself it has a place
            raise FlagPerfError(f"{vendor.name}: {error.message}", remedy=error.remedy) from error
        reason = f"{vendor.name}'s parse_device_list: {error.message}"
        raise FlagPerfError(reason, remedy=f"mend it: {error.where}") from error
