"""Sample Cambricon MLUs by the table of `cnmon`.

- power: what stands under "Pwr:Usage", in W; over how long it is averaged is not said.
- energy: there is no counter; it is integrated from power.
- utilisation: "Util", of which cnmon says no more.
- memory used: physical memory of the device.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cnmon_table import cards

from utils.monitors.tool import Tool, number_of, run_tool
from utils.telemetry import Sample

NOTE = (
    "cnmon: power in W, averaged over a time that is not said; no energy counter; "
    "utilisation is its Util; memory used is the device's physical memory"
)
COMMAND = DESCRIBE_COMMAND = ("cnmon",)
ABSENT = "N/A"
# Beyond these a reading is no measurement.
PLAUSIBLE = {"Temp": (1.0, 200.0), "Pwr:Usage": (1.0, 3000.0)}


def parse(text: str) -> dict[str, Sample]:
    """The sample of each card, by its number; errors see `cards`."""
    return {card["Card"]: _sample(card) for card in cards(text)}


def describe(text: str) -> list[dict[str, Any]]:
    """What each card is, in the order of the table."""
    _, driver, rest = text.partition("Driver v")
    return [
        {
            "name": card["Name"],
            "firmware": card["Firmware"],
            "driver": card.get("Driver") or (f"v{rest.split()[0]}" if driver else None),
            "pci_bus": card.get("Bus-Id"),
            "memory_mib": number_of(_pair(card, "Memory-Usage")[1]),
            "power_limit_w": number_of(_pair(card, "Pwr:Usage/Cap")[1]),
            "mode": card.get("Compute-Mode"),
        }
        for card in cards(text)
    ]


def open_devices() -> Tool:
    """See what cards there are; errors see `Tool.open`."""
    return Tool("cambricon", NOTE, COMMAND, parse).open()


def describe_devices() -> list[dict[str, Any]]:
    """The cards for the node's inventory."""
    return describe(run_tool(DESCRIBE_COMMAND))


def _pair(card: Mapping[str, str], heading: str) -> tuple[str, str]:
    """What stands before and behind the slash, which touches the first: `30 W/ 150 W`."""
    first, _, second = card.get(heading, "").rpartition("/ ")
    return first.strip(), second.strip()


def _sample(card: Mapping[str, str]) -> Sample:
    used, total = _pair(card, "Memory-Usage")
    readings = {
        "Util": card.get("Util", ABSENT), "Pwr:Usage": _pair(card, "Pwr:Usage/Cap")[0],
        "Temp": card.get("Temp", ABSENT), "used": used, "total": total,
    }  # fmt: skip
    values = {name: _value(name, cell) for name, cell in readings.items()}
    wrong = [name for name, value in values.items() if value is None and readings[name] != ABSENT]
    busy = values["Util"]
    return Sample(
        0,
        "",
        utilisation=None if busy is None else busy / 100,
        power_w=values["Pwr:Usage"],
        memory_used_mib=values["used"],
        memory_total_mib=values["total"],
        temperature_c=values["Temp"],
        error="; ".join(f"{name} of {readings[name]} is no measurement" for name in wrong),
    )


def _value(name: str, cell: str) -> float | None:
    value = number_of(cell)
    least, most = PLAUSIBLE.get(name, (0.0, float("inf")))
    return value if value is not None and least <= value <= most else None
