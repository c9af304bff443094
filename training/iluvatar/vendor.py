"""Iluvatar CoreX GPUs: how they are seen, listed and given to a container, and what they can do.

Iluvatar builds PyTorch itself: its devices are called `cuda` there, and its collectives (IXCCL) `nccl`. A board may be
two devices (BI-V150); everything here is per device.
"""

from __future__ import annotations

import re

from utils.errors import FlagPerfError
from utils.monitors.table import DeviceRow, device_rows

DEVICE_TYPE = "cuda"
COLLECTIVE_BACKEND = {"pytorch": "nccl"}
VISIBLE_DEVICES_ENV = "CUDA_VISIBLE_DEVICES"

# As the README of Iluvatar's container toolkit has them (github.com/Deep-Spark/ix-container-toolkit). Some drivers have
# control nodes besides, which it does not bring (README.md). No capability is asked for.
CONTAINER_OPTIONS = {
    "--runtime=iluvatar": "Iluvatar's container toolkit brings /dev/iluvatarN and the driver's libraries",
    "--env=IX_VISIBLE_DEVICES=all": "which devices the toolkit brings; none without it",
}

CHIPS = {
    "BI-V100": {
        "device_names": ["Iluvatar BI-V100,"],
        "memory_gib": 32.0,
        "peak_flops": {"fp64": None, "fp32": None, "bf16": 147e12, "fp16": 147e12, "int8": None},
        "link_bandwidth": {"chip": None, "host": 31.5e9},
        "power_w": 250,
        "source": {
            "memory_gib": "ixsmi: 32768MiB",
            "peak_flops": "Iluvatar's own words in FlagPerf, training/iluvatar/README.md: 147 TFLOPS, FP16/BF16",
            "link_bandwidth": "https://www.iluvatar.com/productDetails?fullCode=cpjs-yj-xlxl-tg100: PCIe 4.0 x16, "
            "16 GT/s a lane, of which 128 of 130 bits are data",
            "power_w": "the same page, and ixsmi's cap: 250 W",
        },
    },
    "BI-V150": {
        "device_names": ["Iluvatar BI-V150,"],
        "memory_gib": 32.0,
        "peak_flops": {},  # what the press has is less than FlagPerf measured (README.md)
        "source": {"memory_gib": "ixsmi: 32768MiB, of each of a board's two devices"},
    },
}

# A table with two lines a device. ixsmi is on no PATH, and finds its library by this variable alone.
LIST_DEVICES_COMMAND = [
    "env", "LD_LIBRARY_PATH=/usr/local/corex/lib64:/usr/local/corex/lib", "/usr/local/corex/bin/ixsmi",
]  # fmt: skip

_NAME = re.compile(r"\d+ +(\S.*)")
_MEMORY = re.compile(r"\d{1,9}MiB / (\d{1,9})MiB")
# What ixsmi prints of a device that fell off the bus (seen with 3.0.1): the largest number of 16 bits, and no warmth.
_LOST = re.compile(r"\b65535W\b|(?<![\d.])0C\b")


def parse_device_list(stdout: str) -> list[str]:
    """The devices in the output of LIST_DEVICES_COMMAND, as `Iluvatar BI-V150, 32768 MiB`.

    Raises:
        FlagPerfError: a device fell off the bus; what was printed is no such table.
    """
    if not stdout.strip():
        return []
    try:
        return [_device(row) for row in device_rows(stdout, "Bus-Id")]
    except ValueError as error:
        raise FlagPerfError(
            f"ixsmi reports trouble: {error}",
            remedy="run ixsmi on the host; a device that does not answer needs a reset or a reboot",
        ) from error


def _device(row: DeviceRow) -> str:
    name, memory = _NAME.fullmatch(row.cell(0, "Name")), _MEMORY.fullmatch(row.cell(1, "Memory-Usage"))
    readings = row.cell(1, "Temp")
    if name is None or memory is None or _LOST.search(readings):
        raise ValueError(" | ".join([*row.lines[0], *row.lines[1]]))
    return f"{name[1]}, {memory[1]} MiB"
