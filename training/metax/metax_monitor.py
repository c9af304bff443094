"""Sample MetaX GPUs by the table that `mx-smi` prints. It has all that is sampled, in one command and with its units.

What the figures are:

- power: of the board, whole watts: what comes in by its supply lines, added (`mx-smi --show-board-power`).
- energy: MetaX has no counter.
- utilisation: GPU-Util; MetaX does not say what of.
- memory used: with what the driver holds: 826 to 858 MiB on idle cards. The total is the card's, also where a process
  sees a slice of it.
- temperature: of the chip's hottest place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from utils.monitors.table import DeviceRow, device_rows
from utils.monitors.tool import Tool, number_of, run_tool
from utils.telemetry.records import Sample

DESCRIBE_COMMAND = ("mx-smi", "--summary")
NOTE = (
    "mx-smi: power is of the board, what its supply lines bring, in whole watts; there is no energy counter; "
    "utilisation is what mx-smi calls GPU-Util; memory used includes the driver's own"
)
KIB_PER_MIB = 1024
AVAILABLE = ("", "Available")  # releases before 2.2 do not say it

_TEMPERATURE = re.compile(r"(-?\d{1,9})C\b")
_POWER = re.compile(r"(\d{1,9})W\b")
_MEMORY = re.compile(r"(\d{1,9})/(\d{1,9}) MiB")
_DESCRIBED = re.compile(r"GPU#\d+ +(\S+(?: +\S+)*?) +([^\s:]+:[^\s:]+:\S+)")


def parse(text: str) -> Mapping[str, Sample]:
    """The GPUs of the table, by their number.

    Raises:
        ValueError: there is no such table, or a row of it has no number.
    """
    return dict(_device(row) for row in device_rows(text, "Bus-id"))


def _device(row: DeviceRow) -> tuple[str, Sample]:
    number = row.cell(0, r"GPU\b(?!-)").partition(" ")[0]
    if not number.isdecimal():
        raise ValueError(f"a row has no number of a GPU: {row.lines[0]}")
    state = row.lines[1][-1]  # below the utilisation, under one heading or another
    if state not in AVAILABLE:
        return number, Sample(0, "", error=f"mx-smi calls it {state}")
    percent = number_of(row.cell(0, "GPU-Util"))
    memory = _MEMORY.search(row.cell(1, "Memory-Usage"))
    return number, Sample(
        0,
        "",
        utilisation=None if percent is None else percent / 100,
        power_w=_number(_POWER, row.cell(1, "Pwr:Usage/Cap|Power")),
        memory_used_mib=float(memory[1]) if memory else None,
        memory_total_mib=float(memory[2]) if memory else None,
        temperature_c=_number(_TEMPERATURE, row.cell(1, "Temp")),
    )


def _number(pattern: re.Pattern[str], cell: str) -> float | None:
    match = pattern.search(cell)
    return float(match[1]) if match else None


def describe(text: str) -> list[dict[str, Any]]:
    """What `mx-smi --summary` says of each GPU; None for what it does not say."""
    devices = []
    for block in re.split(r"(?m)^(?=GPU#)", text)[1:]:
        head, *lines = block.splitlines()
        name = _DESCRIBED.match(head)
        pairs = (line.partition(" : ") for line in lines)
        values = {key.strip(): value.strip() for key, found, value in pairs if found}
        memory = number_of(values.get("vram total", ""))
        devices.append(
            {
                "name": name and name[1],
                "pci_bus": name and name[2],
                "vbios": values.get("BIOS"),
                "driver": values.get("KMD"),
                "maca": values.get("MACA"),
                "memory_mib": None if memory is None else memory / KIB_PER_MIB,
                "power_limit_w": number_of(values.get("Limit", "")),
            }
        )
    return devices


def describe_devices() -> list[dict[str, Any]]:
    """The GPUs for the node's inventory, in mx-smi's order.

    Raises:
        FlagPerfError: there is no mx-smi, or it fails.
    """
    return describe(run_tool(DESCRIBE_COMMAND))


def open_devices() -> Tool:
    """Start sampling.

    Raises:
        FlagPerfError: there is no mx-smi, it fails, or it lists no GPU.
    """
    return Tool("metax", NOTE, ("mx-smi",), parse).open()
