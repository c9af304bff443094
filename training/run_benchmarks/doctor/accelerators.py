"""What a vendor's own tool says of a host's devices, and whether a container gets them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from run_benchmarks.doctor.look import LONGEST_VALUE, Patient
from run_benchmarks.plan.apart import apart
from run_benchmarks.plan.records import Plan
from run_benchmarks.plan.vendor_record import Vendor
from run_benchmarks.runtimes.base import Runtime
from run_benchmarks.stages.checks import DoubtError
from run_benchmarks.stages.devices import LISTING_S, kinds_text, list_devices
from run_benchmarks.transports.base import WHOLE_BYTES, Transport
from utils.errors import FlagPerfError
from utils.loading import load_module
from utils.monitors.accelerators import monitor_file
from utils.plain_data import exact
from utils.text_files import one_line, shortened

COMMAND, DESCRIBE = "DESCRIBE_COMMAND", "describe"
# What is trouble of a device, and of what kind; it is no fact that hosts are compared by.
ERROR, DOUBT = "error", "doubt"
# What tells devices of one host apart, and is none of what hosts should share.
OWN = ("pci_bus", ERROR, DOUBT)
MOST_DEVICES = 1024
Device = Mapping[str, bool | int | float | str | None]


async def accelerators(plan: Plan, runtime: Runtime, patient: Patient) -> str | None:
    """Each vendor's devices are listed, and its tool knows of no trouble with one of them."""
    details: list[str] = []
    errors: list[str] = []
    doubts: list[str] = []
    for vendor in patient.vendors:
        if not vendor.list_devices_command:
            continue
        names = await list_devices(vendor, patient.transport)
        devices = await _described(vendor, patient.transport)
        patient.facts[f"{vendor.name} devices"] = kinds_text(names)
        patient.facts.update({f"{vendor.name} {name}": text for name, text in shared_facts(devices).items()})
        driver = shared_facts(devices).get("driver")
        details.append(f"{kinds_text(names)}{f', driver {driver}' if driver else ''}")
        errors += troubles(devices, ERROR)
        doubts += troubles(devices, DOUBT) if names else [f"no device of {vendor.name}"]
    detail = "; ".join((*details, *errors, *doubts))
    remedy = (
        "see what the vendor's tool says of these devices on this host, and mend or leave out what is broken"
    )
    if errors:
        raise FlagPerfError(detail, remedy=remedy)
    if doubts:
        raise DoubtError(detail, remedy=remedy)
    return detail or None


def shared_facts(devices: Sequence[Device]) -> dict[str, str]:
    """What the tool says of all devices: the values that it has of each name, each value once."""
    values: dict[str, dict[str, None]] = {}
    for device in devices:
        for name, value in device.items():
            if value not in (None, "") and name not in OWN:
                values.setdefault(_short(name), {})[_short(str(value))] = None
    return {name: _short(", ".join(sorted(texts))) for name, texts in values.items()}


def _short(text: str) -> str:
    return shortened(one_line(text), LONGEST_VALUE)


def troubles(devices: Sequence[Device], kind: str) -> list[str]:
    """A text a device that has trouble of this kind, with its number."""
    return [
        f"device {number}: {_short(str(device[kind]))}"
        for number, device in enumerate(devices)
        if device.get(kind)
    ]


async def _described(vendor: Vendor, transport: Transport) -> Sequence[Device]:
    """The vendor's `describe` of what its DESCRIBE_COMMAND prints on the host; none where it has no such command.

    The tool belongs to the driver: where it fails, it failed at listing the devices too, or cannot say it.
    """
    file = monitor_file(vendor.folder)
    if not file.is_file():
        return ()
    command = await asyncio.to_thread(_command_of, file)
    if not command:
        return ()
    done = await transport.run(command, timeout=LISTING_S, held=WHOLE_BYTES)
    if not done.ok:
        raise DoubtError(
            f"{' '.join(command)}: {done.last_lines(1)}", remedy=f"run it on this host ({vendor.name})"
        )
    devices: list[Device] = await asyncio.to_thread(apart, partial(_devices, file, done.whole_stdout()), file)
    return devices


@lru_cache(maxsize=32)
def _command_of(file: Path) -> tuple[str, ...]:
    """Asked of the vendor's file once, and not for every host."""
    return tuple(apart(partial(_command, file), file))


def _command(file: Path) -> Any:
    command = exact(getattr(load_module(file, f"flagperf_{file.stem}"), COMMAND, ()))
    if isinstance(command, (list, tuple)) and all(isinstance(word, str) for word in command):
        return list(command)
    raise FlagPerfError(f"{COMMAND} is no list of texts", where=str(file))


def _devices(file: Path, printed: str) -> Any:
    described = getattr(load_module(file, f"flagperf_{file.stem}"), DESCRIBE)(printed)
    devices = [exact({str(name): value for name, value in each.items()}) for each in described[:MOST_DEVICES]]
    if all(
        isinstance(value, (bool, int, float, str, type(None))) for each in devices for value in each.values()
    ):
        return devices
    raise FlagPerfError(f"what {DESCRIBE} returns has more than plain values", where=str(file))
