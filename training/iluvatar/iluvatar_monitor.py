"""Sample Iluvatar GPUs by the table that `ixsmi` prints. It has all that is sampled, in one command and with its units.

What the figures are:

- power: of the board, whole watts. Of a board with two devices the second has it for both, and the first N/A: it is
  counted once.
- energy: CoreX has no counter.
- utilisation: the share of the GPU's compute capability that is in use, by ixsmi's help.
- memory used: with what the driver holds: 9 to 513 MiB on idle devices.
- temperature: of the GPU's core.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from utils.monitors.table import DeviceRow, device_rows
from utils.monitors.tool import Tool, number_of, run_tool
from utils.telemetry.records import Sample

DESCRIBE_COMMAND = ("ixsmi", "-q")
NOTE = (
    "ixsmi: power is of the board, in whole watts; of a board's two devices the second carries it; "
    "there is no energy counter; utilisation is what ixsmi calls GPU-Util; memory used includes the driver's own"
)
_TEMPERATURE = re.compile(r"(-?\d{1,9})C\b")
_POWER = re.compile(r"(\d{1,9})W /")
_MEMORY = re.compile(r"(\d{1,9})MiB / (\d{1,9})MiB")
# Products with two devices a board, by the end of their name in the recordings of releases 4.1.0 to 4.4.0.
_TWO_DEVICES = ("BI-V150", " DUO")
LOST_W = (
    65535  # what ixsmi prints, with 0 C, of a device that fell off the bus: the largest number of 16 bits
)


def parse(text: str) -> Mapping[str, Sample]:
    """The devices of the table, by their number.

    Raises:
        ValueError: there is no such table, or a row of it has no number.
    """
    rows = device_rows(text, "Bus-Id")
    devices = dict(map(_device, rows))
    names = [row.cell(0, "GPU") for row in rows if row.cell(0, "GPU").endswith(_TWO_DEVICES)]
    numbers = [name.partition(" ")[0] for name in names]
    for first, second in zip(numbers, numbers[1:]):  # noqa: B905, RUF007 - for Python 3.8
        if devices[first].power_w is None and devices[second].power_w is not None:
            devices[first] = replace(devices[first], power_on=second)
    return devices


def _device(row: DeviceRow) -> tuple[str, Sample]:
    number, readings = row.cell(0, "GPU").partition(" ")[0], row.cell(1, "Pwr:Usage/Cap")
    if not number.isdecimal():
        raise ValueError(f"a row has no number of a GPU: {row.lines[0]}")
    power, temperature = _number(_POWER, readings), _number(_TEMPERATURE, readings)
    if power == LOST_W or temperature == 0:
        return number, Sample(0, "", error=f"ixsmi prints what no device has: {readings}")
    percent, memory = number_of(row.cell(1, "GPU-Util")), _MEMORY.search(row.cell(1, "Memory-Usage"))
    return number, Sample(
        0,
        "",
        utilisation=None if percent is None else percent / 100,
        power_w=power,
        memory_used_mib=float(memory[1]) if memory else None,
        memory_total_mib=float(memory[2]) if memory else None,
        temperature_c=temperature,
    )


def _number(pattern: re.Pattern[str], cell: str) -> float | None:
    match = pattern.search(cell)
    return float(match[1]) if match else None


def describe(text: str) -> list[dict[str, Any]]:
    """What `ixsmi -q` says of each device; None for what it does not say."""
    head, *blocks = re.split(r"(?m)^GPU (?=[0-9A-F]+:)", text)
    driver = _values(head).get("Driver Version")
    return [{**_description(_values(block)), "driver": driver} for block in blocks]


def _description(values: Mapping[str, str]) -> dict[str, Any]:
    return {
        "name": values.get("Product Name"),
        "vbios": values.get("VBIOS Version"),
        "pci_bus": values.get("Bus Id"),
        "two_device_board": {"Yes": True, "No": False}.get(values.get("MultiGPU Board", "")),
        "memory_mib": number_of(values.get("Total", "")),
        "power_limit_w": number_of(values.get("Current GPU Power Limit", "")),
        "board_power_limit_w": number_of(values.get("Current Board Power Limit", "")),
    }


def _values(block: str) -> dict[str, str]:
    """What stands behind each name, as it stands there first: later headings have names again (Max Clocks)."""
    pairs = [line.partition(" : ") for line in block.splitlines()]
    return {name.strip(): value.strip() for name, _, value in reversed(pairs) if value.strip()}


def describe_devices() -> list[dict[str, Any]]:
    """The devices for the node's inventory, in ixsmi's order.

    Raises:
        FlagPerfError: there is no ixsmi, or it fails.
    """
    return describe(run_tool(DESCRIBE_COMMAND))


def open_devices() -> Tool:
    """Start sampling.

    Raises:
        FlagPerfError: there is no ixsmi, it fails, or it lists no device.
    """
    return Tool("iluvatar", NOTE, ("ixsmi",), parse).open()
