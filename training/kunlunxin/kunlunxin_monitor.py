"""Sample Kunlunxin XPUs by `xpu-smi`: its table, which is nvidia-smi's with a third line a card.

- power: of the card, in whole W; over how long it is averaged is not said.
- energy: there is no counter; it is integrated from power.
- utilisation: "XPU-Util", which is 0 on an idle card that holds memory.
- memory used: of the card's own memory; its L3 is counted apart and not here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from utils.monitors.table import device_rows
from utils.monitors.tool import Tool, number_of, run_tool
from utils.telemetry import Sample

NOTE = (
    "xpu-smi: power of the card in whole W, averaged over a time that is not said; no energy counter; "
    "utilisation is XPU-Util; memory used is the card's own, without L3"
)
COMMAND = DESCRIBE_COMMAND = ("xpu-smi",)
NAME, READINGS = 0, 1  # of a card's three lines
ABSENT = "N/A"
# Beyond these a reading is no measurement.
PLAUSIBLE = {"Temp": (1.0, 200.0), "Pwr:Usage": (1.0, 3000.0)}


def parse(text: str) -> dict[str, Sample]:
    """The sample of each card, by the number that xpu-smi gives it.

    Raises:
        ValueError, LookupError: this is not the table, or a card in it has another form.
    """
    return {number: _sample(cells) for number, _, cells in _cards(text)}


def describe(text: str) -> list[dict[str, Any]]:
    """What each card is, in the order of the table. In a container the driver may be that of CUDA's shim, 515.58."""
    driver = text.partition("Driver Version:")[2].split()[0]
    return [
        {
            "name": name,
            "driver": driver,
            "memory_mib": number_of(cells["Memory-Usage"].partition(" / ")[2]),
            "power_limit_w": number_of(cells["Pwr:Usage/Cap"].partition(" / ")[2]),
        }
        for _, name, cells in _cards(text)
    ]


def open_devices() -> Tool:
    """See what cards there are; errors see `Tool.open`."""
    return Tool("kunlunxin", NOTE, COMMAND, parse).open()


def describe_devices() -> list[dict[str, Any]]:
    """The cards for the node's inventory."""
    return describe(run_tool(DESCRIBE_COMMAND))


def _cards(text: str) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Number, name, and the cells of the line with the readings by their headings."""
    for row in device_rows(text, "Persistence-M", lines=3):
        number, *name = row.lines[NAME][0].split()[:-1]  # at the end stands the persistence mode
        headings = row.heading[READINGS][0].split()
        board = row.lines[READINGS][0].split(maxsplit=len(headings) - 1)
        cells = dict(zip(headings, board, strict=True))
        cells["Memory-Usage"] = row.cell(READINGS, "^Memory-Usage$")
        cells["XPU-Util"] = row.cell(READINGS, "^XPU-Util").split()[0]
        yield number, " ".join(name), cells


def _sample(cells: dict[str, str]) -> Sample:
    power, _, _ = cells["Pwr:Usage/Cap"].partition(" / ")
    used, _, total = cells["Memory-Usage"].partition(" / ")
    readings = {
        "Temp": cells["Temp"], "Pwr:Usage": power, "XPU-Util": cells["XPU-Util"], "used": used, "total": total
    }  # fmt: skip
    values = {name: _value(name, cell.strip()) for name, cell in readings.items()}
    wrong = [name for name, value in values.items() if value is None and readings[name].strip() != ABSENT]
    use = values["XPU-Util"]
    return Sample(
        0,
        "",
        utilisation=None if use is None else use / 100,
        power_w=values["Pwr:Usage"],
        memory_used_mib=values["used"],
        memory_total_mib=values["total"],
        temperature_c=values["Temp"],
        error="; ".join(f"{name} of {readings[name].strip()} is no measurement" for name in wrong),
    )


def _value(name: str, cell: str) -> float | None:
    value = number_of(cell)
    least, most = PLAUSIBLE.get(name, (0.0, float("inf")))
    return value if value is not None and least <= value <= most else None
