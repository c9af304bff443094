"""Sample Hygon DCUs by `hy-smi`, which comes with the host's driver; Hygon has no library for Python.

Each call takes a second or more. What the figures are (keys of its JSON, recorded on K100_AI and BW):

- power: `Average Graphics Package Power (W)`. Whether that is the whole card is not documented. No energy counter.
- utilisation: `HCU use (%)`, `DCU use (%)` before driver 6.3; N/A where the management interface cannot be opened.
- memory: of the card, with what the driver reserves.
- temperature: of the junction.

Cards are numbered as hy-smi does, from 0 (from 1 in DTK 22.10), and are all those of the host.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from utils.errors import FlagPerfError
from utils.monitors.tool import Tool, number_of, run_tool
from utils.telemetry import Sample

SOURCE = "hygon"
NOTE = (
    "hy-smi: power is its average of the graphics package; there is no energy counter; utilisation is its HCU use; "
    "memory used is the whole card's"
)
HY_SMI = "/opt/hyhal/bin/hy-smi"
DESCRIBE_COMMAND = (HY_SMI, "--showid", "--showproductname", "--showdriverversion", "--json")
READINGS = ("--showuse", "--showmeminfo", "vram", "--showtemp", "--json")
POWER = "--showpower"  # some releases do not have it
BYTES_PER_MIB = 2**20
# A K100_AI at work has shown 8 W; the least believable reading on record is 18 W, of an idle Z100.
POWER_W = (10, 2_000)
TEMPERATURE_C = (1, 150)


def parse(text: str) -> Mapping[str, Sample]:
    """The readings by card number.

    Raises:
        ValueError: there is no JSON in it.
    """
    cards = _cards(text)
    return {card[len("card") :]: _sample(about) for card, about in cards.items()}


def _cards(text: str) -> dict[str, dict[str, Any]]:
    """The cards among the objects of the JSON, before which some releases print lines of text."""
    objects = json.JSONDecoder().raw_decode(text, text.index("{"))[0]
    return {name: about for name, about in objects.items() if name.startswith("card")}


def _sample(about: Mapping[str, Any]) -> Sample:
    errors: list[str] = []
    use = _value(about, "HCU use (%)", "DCU use (%)")
    return Sample(
        0,
        SOURCE,
        utilisation=None if use is None else use / 100,
        power_w=_within(POWER_W, _value(about, "Average Graphics Package Power (W)"), "power", "W", errors),
        memory_used_mib=_mib(about, "vram Total Used Memory"),
        memory_total_mib=_mib(about, "vram Total Memory"),
        temperature_c=_within(
            TEMPERATURE_C, _value(about, "Temperature (Sensor junction) (C)"), "temperature", "C", errors
        ),
        error="; ".join(errors),
    )


def _value(about: Mapping[str, Any], *keys: str) -> float | None:
    """The number under the first of `keys` that is there."""
    return next((number_of(str(about[key])) for key in keys if key in about), None)


def _mib(about: Mapping[str, Any], name: str) -> float | None:
    mib, size = _value(about, f"{name} (MiB)"), _value(about, f"{name} (B)")
    return size / BYTES_PER_MIB if mib is None and size is not None else mib


def _within(
    limits: tuple[float, float], value: float | None, name: str, unit: str, errors: list[str]
) -> float | None:
    """A value that can be; one that cannot is an error of the card."""
    if value is None or limits[0] <= value <= limits[1]:
        return value
    errors.append(f"a {name} of {value:g} {unit}")
    return None


def describe_devices() -> list[dict[str, Any]]:
    """The cards for the node's inventory, by hy-smi's number; errors see `open_devices`."""
    return describe(run_tool(DESCRIBE_COMMAND))


def describe(text: str) -> list[dict[str, Any]]:
    """What each card is, by hy-smi's number."""
    objects = json.JSONDecoder().raw_decode(text, text.index("{"))[0]
    versions = {key.lower(): value for about in objects.values() for key, value in about.items()}
    driver = next((value for key, value in versions.items() if key.startswith("driver version")), None)
    return [
        {
            "name": about.get("Card Series") or None,
            "pci_device": about.get("Device ID"),
            "vendor": about.get("Card Vendor"),
            "driver": driver,
        }
        for about in _cards(text).values()
    ]


def open_devices() -> Tool:
    """See that hy-smi answers.

    Raises:
        FlagPerfError: it is not there, fails, or lists no card.
    """
    try:
        return Tool(SOURCE, NOTE, (HY_SMI, POWER, *READINGS), parse).open()
    except FlagPerfError as error:
        try:
            return Tool(SOURCE, f"{NOTE}; this release tells no power", (HY_SMI, *READINGS), parse).open()
        except FlagPerfError:
            raise error from None
