"""What `nvidia-smi -q` says of each GPU, for hosts that have a driver and no `pynvml`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from utils.monitors.tool import number_of

DESCRIBE_COMMAND = ("nvidia-smi", "-q")  # what every host with a driver has, also where there is no pynvml
# Where `nvidia-smi -q` has it: with the heading that it stands under where the name alone is not enough.
_DESCRIBED = {
    "name": "Product Name",
    "vbios": "VBIOS Version",
    "gsp_firmware": "GSP Firmware Version",
    "pci_bus": "Bus Id",
    "ecc": "ECC Mode/Current",
    "mig": "MIG Mode/Current",
    "remapped_correctable": "Remapped Rows/Correctable Error",
    "remapped_uncorrectable": "Remapped Rows/Uncorrectable Error",
}


def describe(text: str) -> list[dict[str, Any]]:
    """What `nvidia-smi -q` says of each GPU; `error` and `doubt` are what of it asks for a hand.

    After NVIDIA's "GPU memory error management" (A100 and later): a GPU with a row that could not be remapped goes
    out of service; a pending remapping is made by a reset; volatile errors are those since the driver was loaded.
    """
    head, *blocks = re.split(r"(?m)^GPU (?=[0-9A-Fa-f]+:)", text)
    versions = _values(head)
    shared = {"driver": versions.get("Driver Version"), "cuda_driver": versions.get("CUDA Version")}
    return [{**_described(_values(block)), **shared} for block in blocks]


def _described(values: Mapping[str, str]) -> dict[str, Any]:
    def of(path: str) -> str | None:
        return next((value for name, value in values.items() if name.lower().endswith(path.lower())), None)

    volatile = [value for name, value in values.items() if "/Volatile/" in name and "Uncorrectable" in name]
    uncorrected = sum(int(value) for value in volatile if value.isdecimal())
    doubts = ["the remapping of a row is pending: reset the GPU"] * (of("Remapped Rows/Pending") == "Yes")
    doubts += [f"{uncorrected} uncorrectable ECC errors since the driver was loaded"] * bool(uncorrected)
    is_failed = of("Remapped Rows/Remapping Failure Occurred") == "Yes"
    return {
        **{name: of(path) for name, path in _DESCRIBED.items()},
        "memory_mib": number_of(of("FB Memory Usage/Total") or ""),
        "uncorrected_volatile": uncorrected,
        "error": "a row could not be remapped: have the GPU replaced" if is_failed else None,
        "doubt": "; ".join(doubts) or None,
    }


def _values(block: str) -> dict[str, str]:
    """Each value by its headings and its name, `Remapped Rows/Pending`; where a name stands twice, the first."""
    values: dict[str, str] = {}
    headings: list[tuple[int, str]] = []
    for line in block.splitlines():
        indent = len(line) - len(line.lstrip())
        name, separator, value = line.strip().partition(" : ")
        headings = [heading for heading in headings if heading[0] < indent]
        if separator:
            path = "/".join((*(heading for _, heading in headings), name.strip()))
            values.setdefault(path, value.strip())
        else:
            headings.append((indent, name))
    return values
